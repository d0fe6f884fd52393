"""Objects as in a real cluster, healthy and broken, for the tests of the diagnosis."""

from typing import Any

from trainyard.chart.diagnose import Collected

NOW = "2026-05-28T20:30:00Z"
BEFORE = "2026-05-28T20:29:00Z"
SPACE = "trainyard-e2e"


def pod(
    name: str = "mnist-worker-0",
    *,
    phase: str = "Running",
    ready: bool = True,
    state: dict[str, Any] | None = None,
    last: dict[str, Any] | None = None,
    restarts: int = 0,
    node: str | None = "trainyard-worker",
    space: str = SPACE,
    **status: Any,
) -> dict[str, Any]:
    container = {
        "name": "main",
        "image": "site.invalid/trainyard/trainer-torch:0.1.0",
        "ready": ready,
        "restartCount": restarts,
        "state": state or {"running": {"startedAt": NOW}},
        "lastState": last or {},
    }
    limits = {"limits": {"memory": "256Mi"}}
    return {
        "metadata": {"name": name, "namespace": space},
        "spec": {"containers": [{"name": "main", "resources": limits}], **({"nodeName": node} if node else {})},
        "status": {"phase": phase, "containerStatuses": [container], **status},
    }


def waiting(reason: str, message: str = "") -> dict[str, Any]:
    return {"waiting": {"reason": reason, "message": message}}


def ended(code: int, reason: str = "Error") -> dict[str, Any]:
    return {"terminated": {"exitCode": code, "reason": reason, "finishedAt": NOW}}


def pending(name: str = "mnist-worker-0", **more: Any) -> dict[str, Any]:
    found = pod(name, phase="Pending", ready=False, node=None, **more)
    found["status"].pop("containerStatuses")
    return found


def thing(name: str, kind: str = "", **status: Any) -> dict[str, Any]:
    """Any object that has a state."""
    return {"kind": kind, "metadata": {"name": name, "namespace": SPACE}, "status": status}


def condition(kind: str, status: str, message: str = "") -> list[dict[str, str]]:
    """The only condition of an object."""
    return [{"type": kind, "status": status, "message": message}]


def node(
    name: str = "trainyard-worker", *, gpus: int | None = 4, usable: int | None = None, **conditions: Any
) -> dict[str, Any]:
    state = {
        "Ready": ("True", "kubelet is posting ready status"),
        "DiskPressure": ("False", ""),
        "MemoryPressure": ("False", ""),
    }
    state |= conditions
    has = {} if gpus is None else {"nvidia.com/gpu": str(gpus)}
    can = has if usable is None else {"nvidia.com/gpu": str(usable)}
    return {
        "metadata": {"name": name, "labels": {"trainyard.io/pool": "cpu" if gpus is None else "gpu"}},
        "status": {
            "capacity": has,
            "allocatable": can,
            "conditions": [{"type": k, "status": s, "message": m} for k, (s, m) in state.items()],
        },
    }


def event(
    reason: str, message: str, *, kind: str = "Pod", name: str = "mnist-worker-0", at: str = NOW, space: str = SPACE
) -> dict[str, Any]:
    return {
        "type": "Normal" if reason.startswith("Success") else "Warning",
        "reason": reason,
        "message": message,
        "involvedObject": {"kind": kind, "namespace": space, "name": name},
        "firstTimestamp": at,
        "lastTimestamp": at,
    }


def healthy() -> Collected:
    """A cluster after a good run, with the warnings that come and go in every one."""
    hook = pod(
        "trainyard-hook-x", phase="Succeeded", ready=False, state=ended(0, "Completed"), space="trainyard-system"
    )
    return Collected(
        nodes=[node(), node("trainyard-worker2"), node("trainyard-worker3", gpus=None)],
        pods=[
            pod(),
            pod("mnist-master-0", phase="Succeeded", ready=False, state=ended(0, "Completed")),
            pod("volcano-scheduler-x", restarts=1, last=ended(1), space="trainyard-system"),
            hook,
        ],
        events=[
            event("FailedScheduling", "0/4 nodes are unavailable: 4 Insufficient nvidia.com/gpu."),
            event("FailedMount", 'MountVolume.SetUp failed for volume "s3": secret "trainyard-s3" not found'),
            event("Unhealthy", "Readiness probe failed", name="volcano-scheduler-x", space="trainyard-system"),
            event("FailedCreate", 'failed calling webhook "x"', kind="ReplicaSet", name="rs", at=BEFORE),
            event("SuccessfulCreate", "Created pod: rs-1", kind="ReplicaSet", name="rs"),
            event("FailedMount", "no such device", name="deleted-since"),
        ],
        podgroups=[
            thing(
                "mnist",
                phase="Running",
                conditions=condition("Unschedulable", "True", "3/4 tasks in gang unschedulable"),
            )
        ],
        queues=[{"metadata": {"name": "training"}, "status": {"state": "Open"}}],
        jobs=[
            thing("mnist", "PyTorchJob", conditions=[*condition("Failed", "False"), *condition("Succeeded", "True")])
        ],
        claims=[thing("data", phase="Bound")],
        logs={"trainyard-system/volcano-scheduler-x/main/previous": "lost the lease"},
        checks=[{"id": "train.pytorchjob", "status": "passed", "figures": {"accuracy": 0.94, "bar": 0.9}}],
    )


HOOK_JOB = {
    "kind": "Job",
    "metadata": {
        "name": "trainyard-apply",
        "namespace": "trainyard-system",
        "annotations": {"helm.sh/hook": "post-install"},
    },
}


def hook_pod(log: str) -> dict[str, Any]:
    """A change to a cluster: the chart's hook failed and last wrote `log`."""
    found = pod("trainyard-apply-9x", phase="Failed", ready=False, state=ended(1), space="trainyard-system")
    found["metadata"]["ownerReferences"] = [{"kind": "Job", "name": "trainyard-apply"}]
    return {"pods": [found], "jobs": [HOOK_JOB], "logs": {"trainyard-system/trainyard-apply-9x/main": log}}


def broken(change: dict[str, Any]) -> Collected:
    """The healthy cluster without its first worker and with `change` in place of what it shows."""
    base = healthy()
    return Collected(
        **{**vars(base), "pods": [p for p in base.pods if p["metadata"]["name"] != "mnist-worker-0"], **change}
    )
