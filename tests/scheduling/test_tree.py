"""Queues below queues on a real scheduler: the tree holds, and what stops it is known."""

from collections.abc import Callable
from typing import Any

import pytest
from scheduler_harness import SchedulerHarness

Config = Callable[..., str]
# Any queue below another makes the chart turn the tree on.
TREE = (
    "global.contract.queues[0].name=training",
    "global.contract.queues[0].weight=1",
    "global.contract.queues[0].reclaimable=true",
    "global.contract.queues[1].name=all",
    "global.contract.queues[1].weight=1",
    "global.contract.queues[1].reclaimable=true",
    "global.contract.queues[2].name=vision",
    "global.contract.queues[2].parent=all",
    "global.contract.queues[2].weight=1",
    "global.contract.queues[2].reclaimable=true",
)


def room(gpus: int) -> dict[str, Any]:
    return {"cpu": str(gpus * 2), "memory": f"{gpus * 8}G", "nvidia.com/gpu": str(gpus)}


def family(cluster: SchedulerHarness) -> None:
    """Two teams of four GPUs each below a department of six, on eight."""
    cluster.node("gpu-0", gpus=4, cpu="64")
    cluster.node("gpu-1", gpus=4, cpu="64")
    cluster.queue("all", capability=room(6), deserved=room(6))
    cluster.queue("vision", parent="all", capability=room(6), deserved=room(3), guarantee={"resource": room(2)})
    cluster.queue("speech", parent="all", capability=room(6), deserved=room(3), guarantee={"resource": room(2)})


def test_children_stay_within_their_parent(cluster: SchedulerHarness, config: Config) -> None:
    with cluster.scheduler(config(*TREE)):
        family(cluster)
        cluster.job("v", "vision", gpus=4)
        cluster.job("s", "speech", gpus=2)
        assert cluster.runs("v")
        assert cluster.runs("s")
        cluster.job("more", "speech", gpus=1)
        assert cluster.stays_out("more")  # the department has its six, though two are free


def test_guarantee_of_a_sibling_is_kept_free(cluster: SchedulerHarness, config: Config) -> None:
    with cluster.scheduler(config(*TREE)):
        family(cluster)
        cluster.job("v4", "vision", gpus=4)
        assert cluster.runs("v4")
        cluster.job("v1", "vision", gpus=1)
        assert cluster.stays_out("v1")
        cluster.job("s2", "speech", gpus=2)
        assert cluster.runs("s2")


def test_gpus_that_vanish_do_not_stop_the_others(cluster: SchedulerHarness, config: Config) -> None:
    """Guarantees and shares add up to more than is left: what older releases of Volcano stopped at (#4684)."""
    with cluster.scheduler(config(*TREE)):
        family(cluster)
        cluster.job("v", "vision", gpus=1)
        assert cluster.runs("v")
        cluster.gpus("gpu-0", 1)
        cluster.gpus("gpu-1", 1)
        cluster.job("v2", "vision", gpus=1)
        cluster.job("cpu", "speech")
        assert cluster.runs("v2")
        assert cluster.runs("cpu")


@pytest.mark.parametrize(
    "add",
    [
        pytest.param(lambda cluster: cluster.job("wrong", "all", gpus=1), id="a job in all"),
        pytest.param(lambda cluster: cluster.job("wrong", "root", gpus=1), id="a job in root"),
        pytest.param(lambda cluster: cluster.queue("orphan", parent="nobody"), id="a parent that is not there"),
    ],
)
def test_what_a_tree_may_not_have_stops_everything(
    cluster: SchedulerHarness, config: Config, add: Callable[[SchedulerHarness], None]
) -> None:
    """Why no job may name a parent: admission refuses vcjobs, the policies PodGroups, the linter values. And why the
    linter asks for a queue's parent, and the setup job applies parents first."""
    with cluster.scheduler(config(*TREE)):
        family(cluster)
        add(cluster)
        cluster.job("v", "vision", gpus=1)
        assert cluster.stays_out("v")
