"""What teams see of the cluster's GPUs: what counts as free, held and out of service, and which gangs wait."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from trainyard_agent.usage import gpu_counts
from trainyard_agent.usage.gpu_counts import Cluster

NOW = datetime(2026, 5, 4, 12, 0, 0, tzinfo=UTC)
GPU = "nvidia.com/gpu"
POOLS = [
    {"name": "gpu", "kind": "gpu", "labels": {"trainyard.io/pool": "gpu"}, "gpu": {"resource": GPU, "model": ""}},
    {"name": "mig", "kind": "gpu", "labels": {"trainyard.io/pool": "mig"}, "gpu": {"resource": "nvidia.com/mig-1g"}},
    {"name": "cpu", "kind": "cpu", "labels": {"trainyard.io/pool": "cpu"}},
]


def ago(seconds: float) -> str:
    return gpu_counts.stamp(NOW - timedelta(seconds=seconds))


def node(
    name: str, gpus: int, *, model: str = "A100", usable: int | None = None, ready: str = "True", **more: Any
) -> Any:
    labels = {"trainyard.io/pool": "gpu", gpu_counts.PRODUCT: model, gpu_counts.MEMORY: "40960"}
    amounts = {"capacity": {GPU: str(gpus)}, "allocatable": {GPU: str(gpus if usable is None else usable)}}
    conditions = [{"type": "Ready", "status": ready}]
    return {"metadata": {"name": name, "labels": labels}, "spec": more, "status": {**amounts, "conditions": conditions}}


def pod(name: str, gpus: int, on: str = "", *, team: str = "vision", phase: str = "Running", **more: Any) -> Any:
    meta = {"name": name, "namespace": team, "creationTimestamp": ago(more.pop("age", 100))}
    meta["annotations"] = {gpu_counts.GANG: more.pop("gang", "")}
    conditions = [{"type": "PodScheduled", "status": "True", "lastTransitionTime": ago(more.pop("placed", 10))}]
    containers = [{"name": "x", "resources": {"limits": {GPU: str(gpus)}}}]
    status = {"phase": phase, **({"conditions": conditions} if on else {})}
    return {"metadata": meta, "spec": {"containers": containers, "nodeName": on, **more}, "status": status}


def gang(
    name: str, queue: str, phase: str, *, age: float = 60, team: str = "vision", owner: str = "", gpus: int = 0
) -> Any:
    meta = {"name": name, "namespace": team, "creationTimestamp": ago(age)}
    meta["ownerReferences"] = [{"kind": owner}] if owner else []
    return {"metadata": meta, "spec": {"queue": queue, "minResources": {GPU: gpus}}, "status": {"phase": phase}}


def cluster(nodes: list[Any], pods: list[Any], gangs: list[Any] | None = None) -> Cluster:
    asked = gpu_counts.resources(POOLS)
    return Cluster(
        {one["metadata"]["name"]: parts for one in nodes if (parts := gpu_counts.nodes(one, POOLS))},
        [found for one in pods if (found := gpu_counts.pod(one, asked))],
        [gpu_counts.gang(one, asked) for one in gangs or []],
    )


def row(seen: dict[str, Any], pool: str = "gpu", model: str = "A100") -> dict[str, Any]:
    [found] = [one for one in seen["pools"] if (one["pool"], one["model"]) == (pool, model)]
    return found


def test_free_held_and_out_add_up_to_what_is_there() -> None:
    nodes = [node("a", 8), node("b", 8, usable=7), node("c", 4, ready="False"), node("d", 4, unschedulable=True)]
    pods = [pod("p", 3, "a"), pod("q", 2, "d"), pod("over", 5, "a", phase="Succeeded"), pod("waits", 8)]
    found = row(gpu_counts.shared(cluster(nodes, pods), POOLS))
    assert found == {
        "pool": "gpu", "model": "A100", "resource": GPU, "nodes": 4, "gpus": 24, "held": 5, "free": 12, "out": 7,
        "memoryMiB": 40960, "fits": {"5": 1, "7": 1},
    }  # fmt: skip


def test_models_of_a_pool_are_told_apart_and_a_pool_without_nodes_is_there() -> None:
    found = gpu_counts.shared(cluster([node("a", 8), node("b", 2, model="T4")], []), POOLS)["pools"]
    assert [(one["pool"], one["model"], one["free"]) for one in found] == [
        ("gpu", "A100", 8), ("gpu", "T4", 2), ("mig", "", 0),
    ]  # fmt: skip


def test_nothing_shared_names_a_team_or_a_node() -> None:
    nodes, pods = [node("node-of-somebody", 8)], [pod("secret-job", 1, "node-of-somebody", team="speech")]
    gangs = [gang("secret-gang", "speech", "Pending", team="speech", gpus=4)]
    seen = cluster(nodes, pods, gangs)
    both = str(gpu_counts.shared(seen, POOLS)) + str(gpu_counts.of_team(seen, "vision", ["vision"], NOW))
    assert "speech" not in both and "secret" not in both and "somebody" not in both
    assert gpu_counts.shared(seen, POOLS)["waiting"] == {"jobs": 1, "gpus": 4}


def test_a_team_sees_what_it_holds_itself() -> None:
    pods = [pod("p", 3, "a"), pod("q", 2, "a", team="speech"), pod("done", 1, "a", phase="Failed")]
    seen = cluster([node("a", 8)], pods)
    assert gpu_counts.of_team(seen, "vision", [], NOW)["held"] == [{"pool": "gpu", "model": "A100", "gpus": 3}]
    assert row(gpu_counts.shared(seen, POOLS))["held"] == 5


def test_a_shared_queue_counts_what_all_teams_wait_for() -> None:
    pods = [pod("p", 4, gang="g"), pod("q", 4, gang="g"), pod("r", 1, team="speech", gang="s")]
    gangs = [gang("g", "training", "Pending", age=300), gang("s", "training", "Inqueue", age=60, team="speech")]
    [own, shared] = gpu_counts.of_team(cluster([], pods, gangs), "vision", ["vision", "training"], NOW)["queues"]
    assert own["waiting"] == {"jobs": 0, "gpus": 0, "since": ""}
    assert shared["waiting"] == {"jobs": 2, "gpus": 9, "since": ago(300)}


@pytest.mark.parametrize(
    ("made", "pods", "waits"),
    [
        (gang("g", "vision", "Inqueue", gpus=2), [], 1),  # its pods are made once it is in the queue
        (gang("g", "vision", "Inqueue", gpus=2, owner="Workflow"), [], 0),
        (gang("g", "vision", "Inqueue", gpus=2), [pod("p", 2, "a", gang="g", phase="Succeeded")], 0),
        (gang("g", "vision", "Running", gpus=2), [pod("p", 2, gang="g")], 0),
        (gang("g", "vision", "Pending"), [], 0),  # it wants no GPU
    ],
    ids=["no pods yet", "of a run that ended", "its pods are over", "runs", "without GPUs"],
)
def test_which_gangs_wait(made: Any, pods: list[Any], waits: int) -> None:
    assert gpu_counts.shared(cluster([node("a", 8)], pods, [made]), POOLS)["waiting"]["jobs"] == waits


def test_the_wait_of_the_last_hours_starts() -> None:
    gangs = [gang(name, "vision", "Running", age=age) for name, age in (("a", 100), ("b", 500), ("c", 9000))]
    pods = [
        pod("a-0", 1, "n", gang="a", placed=90), pod("a-1", 1, "n", gang="a", placed=80),
        pod("b-0", 1, "n", gang="b", placed=100), pod("c-0", 1, "n", gang="c", placed=7000),
    ]  # fmt: skip
    [queue] = gpu_counts.of_team(cluster([node("n", 8)], pods, gangs), "vision", ["vision"], NOW)["queues"]
    assert queue["started"] == {"jobs": 2, "withinSeconds": 3600, "medianSeconds": 210, "longestSeconds": 400}


@pytest.mark.parametrize(
    ("spec", "gpus"),
    [
        ({"containers": [{"resources": {"requests": {GPU: 2}}}, {"resources": {"limits": {GPU: "1"}}}]}, 3),
        ({"containers": [{}], "initContainers": [{"resources": {"limits": {GPU: 4}}}]}, 4),
        ({"containers": [{"resources": {"limits": {GPU: 1}}}],
          "initContainers": [{"restartPolicy": "Always", "resources": {"limits": {GPU: 1}}}]}, 2),
        ({"containers": [{"resources": {"limits": {GPU: "many"}}}]}, 0),
    ],
)  # fmt: skip
def test_what_a_pod_asks_for(spec: Any, gpus: int) -> None:
    found = gpu_counts.pod({"metadata": {"namespace": "vision"}, "spec": spec}, (GPU,))
    assert (found.gpus if found else {}) == ({GPU: gpus} if gpus else {})
