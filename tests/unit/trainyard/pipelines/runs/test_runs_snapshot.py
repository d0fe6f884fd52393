"""The context of a run: queues, starting pods, training jobs of steps, warnings."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from played_objects import Objects

from trainyard.kube import KubeError
from trainyard.pipelines.runs.snapshot import Observer

GROUP_OF_POD = "scheduling.k8s.io/group-name"
FULL = (
    "1/1 tasks in gang unschedulable; Origin reason is x-0: 0/4 nodes are unavailable: 4 Insufficient nvidia.com/gpu."
)


def _workflow(phase: str = "Pending") -> dict[str, Any]:
    node = {"id": "n", "name": "w.train", "displayName": "train", "type": "Pod", "phase": phase, "boundaryID": "w",
            "startedAt": _time(30)}  # fmt: skip
    root = {"id": "w", "name": "w", "displayName": "w", "type": "DAG", "phase": "Running"}
    return {
        "metadata": {"name": "w", "namespace": "vision"},
        "status": {"phase": "Running", "nodes": {"w": root, "n": node}},
    }


def _time(seconds_ago: float) -> str:
    return (datetime.now(UTC) - timedelta(seconds=seconds_ago)).strftime("%Y-%m-%dT%H:%M:%SZ")


def _pod(**status: Any) -> dict[str, Any]:
    notes = {"workflows.argoproj.io/node-id": "n", GROUP_OF_POD: "g"}
    spec = {"nodeName": status.pop("node")} if "node" in status else {}
    return {
        "metadata": {"name": "w-train-1", "annotations": notes},
        "spec": spec,
        "status": {"phase": "Pending", **status},
    }


def _group(name: str, ago: float, phase: str = "Inqueue", priority: str = "", **more: Any) -> dict[str, Any]:
    meta = {"name": name, "creationTimestamp": _time(ago), **more.pop("meta", {})}
    spec = {"queue": "vision", "priorityClassName": priority, "minMember": more.pop("size", 1)}
    return {"metadata": meta, "spec": spec, "status": {"phase": phase, **more}}


UNSCHEDULABLE = [{"type": "Unschedulable", "status": "True", "message": FULL}]
CLASSES = [{"metadata": {"name": "high"}, "value": 10}]
NO_PLACE = [{"type": "PodScheduled", "status": "False", "message": "not enough"}]
GROUPS = [
    _group("g", 20, conditions=UNSCHEDULABLE),
    _group("older", 40, "Pending"),
    _group("urgent", 5, "Pending", "high"),
    _group("later", 1, "Pending"),
    _group("runs", 90, "Running"),
]


def _seen(cluster: Objects) -> tuple[str, str]:
    snapshot = Observer(cluster, "w").poll()
    (step,) = snapshot.run.steps
    return snapshot.state(step), snapshot.note(step)


def test_a_place_in_the_queue() -> None:
    """A higher class goes first, then who came first; those that run don't count."""
    cluster = Objects(
        workflows=[_workflow()], pods=[_pod(conditions=NO_PLACE)], podgroups=GROUPS, priorityclasses=CLASSES
    )
    why = "x-0: 0/4 nodes are unavailable: 4 Insufficient nvidia.com/gpu."
    assert _seen(cluster) == ("queued", f"3 of 4 in queue vision: {why}")
    cluster.objects["queues"] = [{"metadata": {"name": "vision"}, "status": {"pending": 7, "inqueue": 1}}]
    assert _seen(cluster) == ("queued", f"3 of 4 in queue vision, 8 with other teams': {why}")


def test_gangs_of_runs_without_pods_to_come_are_not_in_the_queue() -> None:
    """The scheduler leaves a run's gang in the queue when its pods have gone, until the run is deleted."""
    stale = _group("stale", 50, meta={"ownerReferences": [{"kind": "Workflow", "name": "old", "uid": "o"}]})
    ours = _group("g", 20, meta={"ownerReferences": [{"kind": "Workflow", "name": "w", "uid": "u"}]})
    cluster = Objects(workflows=[_workflow()], pods=[_pod(conditions=NO_PLACE)], podgroups=[stale, ours])
    assert _seen(cluster) == ("queued", "1 of 1 in queue vision")


def test_without_the_right_to_look_around() -> None:
    cluster = Objects(workflows=[_workflow()], pods=[_pod(conditions=NO_PLACE)])
    cluster.objects |= dict.fromkeys(("podgroups", "events"), KubeError("forbidden", status=403))
    assert _seen(cluster) == ("queued", "waiting for a place")


@pytest.mark.parametrize(
    ("pod", "seen"),
    [
        ({"node": "n1"}, ("starting", "on n1")),
        ({"node": "n1", "phase": "Running"}, ("running", "")),
        (
            {
                "node": "n1",
                "containerStatuses": [{"state": {"waiting": {"reason": "ImagePullBackOff", "message": "no image x"}}}],
            },
            ("blocked", "ImagePullBackOff: no image x"),
        ),
    ],
)
def test_a_pod_on_its_way(pod: dict[str, Any], seen: tuple[str, str]) -> None:
    assert _seen(Objects(workflows=[_workflow()], pods=[_pod(**pod)])) == seen


def test_warnings_are_of_this_pod_and_recent() -> None:
    def event(pod: str, message: str, ago: float, reason: str = "FailedMount") -> dict[str, Any]:
        return {"metadata": {}, "involvedObject": {"name": pod}, "reason": reason, "message": message,
                "lastTimestamp": _time(ago)}  # fmt: skip

    events = [
        event("w-train-1", "no volume a", 20),
        event("w-train-1", "no volume b", 10),
        event("w-train-1", "too long ago", 3600),
        event("other", "not ours", 1),
        event("w-train-1", "said by the pod itself", 1, "BackOff"),
    ]
    cluster = Objects(workflows=[_workflow("Running")], pods=[_pod(phase="Running", node="n1")], events=events)
    assert _seen(cluster) == ("running", "FailedMount: no volume b")


def test_a_training_job_of_the_run_that_waits() -> None:
    def job(name: str, run: str) -> dict[str, Any]:
        return {"metadata": {"name": name, "labels": {"trainyard.io/run": run}}}

    def gang(name: str) -> dict[str, Any]:
        owner = {"apiVersion": "kubeflow.org/v1", "kind": "PyTorchJob", "name": name, "uid": name}
        return _group(name, 10, size=2, meta={"ownerReferences": [owner]})

    cluster = Objects(
        workflows=[_workflow("Running")],
        podgroups=[gang("ours"), gang("theirs")],
        pytorchjobs=[job("ours", "w"), job("theirs", "v")],
    )
    assert Observer(cluster, "w").poll().jobs == (
        "PyTorchJob ours has 2 pods, which wait to start together; 1 of 2 in queue vision",
    )
