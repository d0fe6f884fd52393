"""Proposals for the platform's own pods, as a values file of the chart with the evidence in comments."""

from collections.abc import Sequence
from typing import Any

from trainyard import components, structured
from trainyard.policy.cel import number
from trainyard.rightsize import quantity
from trainyard.rightsize.judged import RESOURCES, Judged

# Keys of the chart's values for containers that are not named after their component; a name that begins with a
# hyphen is a suffix.
PLACES = {
    "-admission": "volcano.custom.admission_resources",
    "admission": "volcano.custom.admission_resources",
    "-controllers": "volcano.custom.controller_resources",
    "-scheduler": "volcano.custom.scheduler_resources",
    "nvidia-device-plugin-ctr": "nvidia-device-plugin.resources",
    "ganesha": "nfs.ganesha.resources",
    "provisioner": "nfs.subdirProvisioner.resources",
    "workflow-controller": "argo.resources",
    "prometheus": "monitoring.prometheus.resources",
    "alertmanager": "monitoring.alertmanager.resources",
    "kube-state-metrics": "monitoring.kubeStateMetrics.resources",
    "node-exporter": "monitoring.nodeExporter.resources",
    "exporter": "monitoring.exporter.resources",
    "usage": "monitoring.usage.resources",
    "collector": "logs.resources",
    "dex": "login.resources",
    "kfp-api": "kfpApi.resources",
    "hub": "notebooks.hub.resources",
    "proxy": "notebooks.proxy.resources",
    "node-prep": "nodePrep.resources",
    "gpu-view": "gpuView.resources",
    "janitor": "janitor.resources",
    "s3-keys": "storeKeys.resources",
    "cache": "datasetCache.resources",
    "backup": "backup.resources",
}


def place(container: str) -> str:
    """Key of a container's resources in the values; "" if the chart has none."""
    if container in PLACES:
        return PLACES[container]
    if container in {one.name for one in components.dependencies() if one.is_ours}:
        return f"{container}.resources"
    return next((path for end, path in PLACES.items() if end.startswith("-") and container.endswith(end)), "")


def text(found: Sequence[Judged]) -> str:
    """The values file: for workloads that share a value, the largest proposal. Limits are never lowered."""
    made: dict[str, Any] = {}
    said = ["# Resources of the platform's own pods, by their usage in the last day. Pass this file with your values."]
    for one in found:
        if not one.changes:
            continue
        container = one.title.rpartition("/")[2]
        why = "; ".join(f"{name} {one.new.why[name]}" for name in RESOURCES if name in one.new.why)
        path = place(container)
        if not path:
            said.append(f"# {one.job.name} {container} has no own value: {why}")
            continue
        said.append(f"# {path} ({one.job.name}): {why}")
        at = made
        for word in path.split("."):
            at = at.setdefault(word, {})
        for key, new in (("requests", one.new.requests), ("limits", one.new.limits)):
            for name in RESOURCES:
                if name in new:
                    amounts = at.setdefault(key, {})
                    largest = max(new[name], number(amounts.get(name)) or 0)
                    amounts[name] = quantity.text(name, largest)
    if not made:
        said.append("# Everything fits; nothing to change.")
    return "\n".join(said) + "\n" + (structured.text(made, "yaml") if made else "")
