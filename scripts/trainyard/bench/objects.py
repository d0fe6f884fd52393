"""Pods and PodGroups as the schedulers get them: the same requests for each, only the scheduler's name differs."""

from __future__ import annotations

from typing import Any

from trainyard.bench.traces import Pod
from trainyard.bench.world import GPU, GROUP, MODEL_LABEL

NAMES = {"volcano": "volcano", "kube": "default-scheduler", "kueue": "default-scheduler"}


def pod(
    asked: Pod, scheduler: str, *, group: str = "", priority: str = "", labels: dict[str, str] | None = None
) -> dict[str, Any]:
    """One pod; with Volcano it belongs to the PodGroup `group`."""
    room = {"cpu": f"{asked.cpu_milli}m", "memory": f"{asked.memory_mib}Mi"}
    if asked.gpus:
        room[GPU] = str(asked.gpus)
    spec: dict[str, Any] = {
        "schedulerName": NAMES[scheduler],
        "containers": [{"name": "main", "image": "none", "resources": {"requests": room, "limits": room}}],
        "tolerations": [{"key": GPU, "operator": "Exists"}] if asked.gpus else [],
        "priorityClassName": priority,
        "automountServiceAccountToken": False,
    }
    if asked.models:
        match = [{"key": MODEL_LABEL, "operator": "In", "values": list(asked.models)}]
        terms = {"nodeSelectorTerms": [{"matchExpressions": match}]}
        spec["affinity"] = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}
    notes = {"scheduling.k8s.io/group-name": group} if group and scheduler == "volcano" else {}
    meta = {"name": asked.name, "namespace": "default", "labels": labels or {}, "annotations": notes}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": spec}


def pod_group(name: str, least: int, *, queue: str = "default", priority: str = "") -> dict[str, Any]:
    """The PodGroup of `least` pods that start together."""
    spec = {"queue": queue, "minMember": least, "priorityClassName": priority}
    meta = {"name": name, "namespace": "default"}
    return {"apiVersion": GROUP, "kind": "PodGroup", "metadata": meta, "spec": spec}
