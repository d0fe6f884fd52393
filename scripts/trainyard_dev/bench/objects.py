"""Pods and PodGroups for the schedulers: the same requests for each, only the scheduler's name differs."""

from typing import Any

from trainyard_dev.bench.harness import GPU, GROUP, MODEL_LABEL, PRESENT
from trainyard_dev.bench.traces import Pod

KUEUE = "kueue.x-k8s.io"
NAMES = {"volcano": "volcano", "kube": "default-scheduler", "kueue": "default-scheduler"}


def pod(
    asked: Pod,
    scheduler: str,
    *,
    group: str = "",
    of: int = 1,
    queue: str = "default",
    priority: str = "",
    labels: dict[str, str] | None = None,
) -> dict[str, Any]:
    """One pod; with Volcano it belongs to the PodGroup `group`, with Kueue to the group of that name with `of` pods."""
    room = {"cpu": f"{asked.cpu_milli}m", "memory": f"{asked.memory_mib}Mi"}
    if asked.gpus:
        room[GPU] = str(asked.gpus)
    values = (PRESENT, *asked.models) if asked.gpus else ()
    spec: dict[str, Any] = {
        "schedulerName": NAMES[scheduler],
        "containers": [{"name": "main", "image": "none", "resources": {"requests": room, "limits": room}}],
        "tolerations": [{"key": GPU, "value": value} for value in values],
        "priorityClassName": priority,
        "automountServiceAccountToken": False,
    }
    if asked.models:
        match = [{"key": MODEL_LABEL, "operator": "In", "values": list(asked.models)}]
        terms = {"nodeSelectorTerms": [{"matchExpressions": match}]}
        spec["affinity"] = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}
    notes = {"scheduling.k8s.io/group-name": group} if group and scheduler == "volcano" else {}
    meta = {"name": asked.name, "namespace": "default", "labels": labels or {}, "annotations": notes}
    if group and scheduler == "kueue":
        _admitted_by_kueue(meta, spec, group, of, queue)
    return {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": spec}


def _admitted_by_kueue(meta: dict[str, Any], spec: dict[str, Any], group: str, of: int, queue: str) -> None:
    """Writes what Kueue's webhook would into a pod of a group, which waits until the whole group has quota."""
    meta["labels"] = meta["labels"] | {
        f"{KUEUE}/managed": "true",
        f"{KUEUE}/queue-name": queue,
        f"{KUEUE}/pod-group-name": group,
    }
    meta["annotations"] = {f"{KUEUE}/pod-group-total-count": str(of), f"{KUEUE}/role-hash": "main"}
    spec["schedulingGates"] = [{"name": f"{KUEUE}/admission"}, {"name": f"{KUEUE}/topology"}]


def pod_group(name: str, least: int, *, queue: str = "default", priority: str = "") -> dict[str, Any]:
    """The PodGroup with at least `least` pods that start together."""
    spec = {"queue": queue, "minMember": least, "priorityClassName": priority}
    meta = {"name": name, "namespace": "default"}
    return {"apiVersion": GROUP, "kind": "PodGroup", "metadata": meta, "spec": spec}
