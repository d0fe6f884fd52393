"""Queues below queues on a real scheduler: the tree holds, and what stops it is known."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from bed import Bed

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


def family(bed: Bed) -> None:
    """Two teams of four GPUs each below a department of six, on eight."""
    bed.node("gpu-0", gpus=4, cpu="64")
    bed.node("gpu-1", gpus=4, cpu="64")
    bed.queue("all", capability=room(6), deserved=room(6))
    bed.queue("vision", parent="all", capability=room(6), deserved=room(3), guarantee={"resource": room(2)})
    bed.queue("speech", parent="all", capability=room(6), deserved=room(3), guarantee={"resource": room(2)})


def test_children_stay_within_their_parent(bed: Bed, config: Config) -> None:
    with bed.scheduler(config(*TREE)):
        family(bed)
        bed.job("v", "vision", gpus=4)
        bed.job("s", "speech", gpus=2)
        assert bed.runs("v")
        assert bed.runs("s")
        bed.job("more", "speech", gpus=1)
        assert bed.stays_out("more")  # the department has its six, though two are free


def test_guarantee_of_a_sibling_is_kept_free(bed: Bed, config: Config) -> None:
    with bed.scheduler(config(*TREE)):
        family(bed)
        bed.job("v4", "vision", gpus=4)
        assert bed.runs("v4")
        bed.job("v1", "vision", gpus=1)
        assert bed.stays_out("v1")
        bed.job("s2", "speech", gpus=2)
        assert bed.runs("s2")


def test_gpus_that_vanish_do_not_stop_the_others(bed: Bed, config: Config) -> None:
    """Guarantees and shares add up to more than is left: what older releases of Volcano stopped at (#4684)."""
    with bed.scheduler(config(*TREE)):
        family(bed)
        bed.job("v", "vision", gpus=1)
        assert bed.runs("v")
        bed.gpus("gpu-0", 1)
        bed.gpus("gpu-1", 1)
        bed.job("v2", "vision", gpus=1)
        bed.job("cpu", "speech")
        assert bed.runs("v2")
        assert bed.runs("cpu")


@pytest.mark.parametrize("queue", ["all", "root"])
def test_a_job_in_a_parent_stops_everything(bed: Bed, config: Config, queue: str) -> None:
    """Why no job may name one: admission refuses vcjobs, the policies PodGroups, the linter values."""
    with bed.scheduler(config(*TREE)):
        family(bed)
        bed.job("wrong", queue, gpus=1)
        bed.job("v", "vision", gpus=1)
        assert bed.stays_out("v")


def test_a_parent_that_is_not_there_stops_everything(bed: Bed, config: Config) -> None:
    """Why the linter asks for it, and the setup job applies parents first."""
    with bed.scheduler(config(*TREE)):
        family(bed)
        bed.queue("orphan", parent="nobody")
        bed.job("v", "vision", gpus=1)
        assert bed.stays_out("v")
