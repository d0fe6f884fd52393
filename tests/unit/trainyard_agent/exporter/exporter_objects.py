"""Objects as the API server returns them, for tests of the exporter."""

import itertools
from datetime import UTC, datetime, timedelta
from typing import Any

from trainyard_agent.usage import gpu_counts

NOW = datetime(2026, 5, 4, 12, 0, 0, tzinfo=UTC)
GPU = "nvidia.com/gpu"
CONTRACT: dict[str, Any] = {
    "nodePools": [{"name": "gpu", "kind": "gpu", "labels": {"trainyard.io/pool": "gpu"}, "gpu": {"resource": GPU}}],
    "teams": [{"name": "vision"}, {"name": "speech"}],
    "queues": [{"name": "training", "owner": "everyone"}],
}
FULL = "0/4 nodes are unavailable: 4 Insufficient nvidia.com/gpu."
_uids = itertools.count(1)

Object = dict[str, Any]


def ago(seconds: float) -> str:
    return gpu_counts.stamp(NOW - timedelta(seconds=seconds))


def meta(name: str, *, team: str = "vision", age: float = 100, **more: Any) -> Object:
    return {"name": name, "namespace": team, "uid": f"uid-{next(_uids)}", "resourceVersion": "1",
            "creationTimestamp": ago(age), **more}  # fmt: skip


def owned(kind: str, name: str, version: str = "kubeflow.org/v1") -> list[Object]:
    return [{"apiVersion": version, "kind": kind, "name": name, "uid": f"of-{name}", "controller": True}]


def template(gpus: int = 1, **asks: str) -> Object:
    limits = {GPU: str(gpus), **asks} if gpus else dict(asks)
    return {"spec": {"containers": [{"name": "main", "resources": {"limits": limits}}]}}


def pod(
    name: str,
    owner: str = "",
    *,
    kind: str = "PyTorchJob",
    version: str = "kubeflow.org/v1",
    gpus: int = 1,
    on: str = "",
    phase: str = "",
    said: str = "",
    gang: str = "",
    waits: str = "",
    notes: Object | None = None,
    **more: Any,
) -> Object:
    """A pod; `said` is what the scheduler says of one without a node, `waits` why its container doesn't start."""
    placed = {
        "type": "PodScheduled",
        "status": "True" if on else "False",
        "message": said,
        "lastTransitionTime": ago(50),
    }
    status: Object = {"phase": phase or ("Running" if on else "Pending"), "conditions": [placed] if on or said else []}
    if waits:
        status["containerStatuses"] = [{"name": "main", "state": {"waiting": {"reason": waits}}}]
    if on:
        status["startTime"] = ago(40)
    more["annotations"] = {**({gpu_counts.GANG: gang} if gang else {}), **(notes or {})}
    head = meta(name, **more, ownerReferences=owned(kind, owner, version) if owner else [])
    return {"metadata": head, "spec": {**template(gpus)["spec"], "nodeName": on}, "status": status}


def job(name: str, *, workers: int = 2, gpus: int = 1, queue: str = "vision", ends: str = "", **more: Any) -> Object:
    spec = {
        "runPolicy": {"schedulingPolicy": {"queue": queue}, **more.pop("policy", {})},
        "pytorchReplicaSpecs": {"Worker": {"replicas": workers, "template": template(gpus, **more.pop("asks", {}))}},
        **more.pop("spec", {}),
    }
    conditions = [{"type": ends, "status": "True"}] if ends else []
    status = {"conditions": conditions, "startTime": ago(more.get("age", 100))}
    return {"apiVersion": "kubeflow.org/v1", "kind": "PyTorchJob", "metadata": meta(name, **more), "spec": spec,
            "status": status}  # fmt: skip


def gang(name: str, owner: str = "", *, phase: str = "Inqueue", least: int = 2, said: str = "", **more: Any) -> Object:
    conditions = [{"type": "Unschedulable", "status": "True", "message": said}] if said else []
    queue, kind = more.pop("queue", "vision"), more.pop("kind", "PyTorchJob")
    version = more.pop("version", "kubeflow.org/v1")
    head = meta(name, **more, ownerReferences=owned(kind, owner, version) if owner else [])
    return {"metadata": head, "spec": {"queue": queue, "minMember": least, "minResources": {GPU: str(least)}},
            "status": {"phase": phase, "conditions": conditions}}  # fmt: skip


def workflow(name: str, phase: str = "Running", *, pipeline: str = "train", took: float = 60, **more: Any) -> Object:
    status = {"phase": phase, "startedAt": ago(200)}
    if phase in ("Succeeded", "Failed", "Error"):
        status["finishedAt"] = ago(200 - took)
    spec = more.pop("spec", {})
    head = meta(name, labels={"trainyard.io/pipeline": pipeline}, **more)
    return {"apiVersion": "argoproj.io/v1alpha1", "kind": "Workflow", "metadata": head, "spec": spec, "status": status}


def node(name: str, gpus: int = 4) -> Object:
    amounts = {"capacity": {GPU: str(gpus)}, "allocatable": {GPU: str(gpus)}}
    labels = {"trainyard.io/pool": "gpu", gpu_counts.PRODUCT: "H100"}
    return {"metadata": {**meta(name), "labels": labels}, "spec": {}, "status": amounts}
