"""Queues on a real scheduler: who goes first when several want what is free."""

from __future__ import annotations

from collections.abc import Callable
from time import sleep

from bed import Bed

Config = Callable[..., str]


def test_free_gpus_go_to_queues_by_their_weight(bed: Bed, config: Config) -> None:
    """The lighter queue is the older one, and all jobs wait for the same two nodes: age must not decide."""
    with bed.scheduler(config()):
        bed.queue("light", weight=1)
        sleep(1.1)  # queues of one second go by name
        bed.queue("heavy", weight=3)
        for index in range(8):
            bed.job(f"light{index}", "light", gpus=1)
            bed.job(f"heavy{index}", "heavy", gpus=1)
        bed.node("gpu-0", gpus=4)
        bed.node("gpu-1", gpus=4)
        assert bed.stays_out("light7")
        assert sum(len(bed.placed(f"light{index}")) for index in range(8)) == 2
        assert sum(len(bed.placed(f"heavy{index}")) for index in range(8)) == 6


def test_a_gang_larger_than_its_queues_part_starts_where_it_fits(bed: Bed, config: Config) -> None:
    """Weights say who goes first, not how much a queue may have."""
    with bed.scheduler(config()):
        bed.node("gpu-0", gpus=8, cpu="64")
        bed.queue("light", weight=1)
        bed.queue("heavy", weight=3)
        bed.job("gang", "light", pods=4, gpus=2)
        assert bed.runs("gang", 4)
        bed.job("waiting", "heavy", gpus=1)
        assert bed.stays_out("waiting")
        assert len(bed.placed("gang")) == 4


def test_preempt_takes_the_node_that_costs_the_fewest(bed: Bed, config: Config) -> None:
    """Three nodes are full: of eight small jobs, of four, and of one, which is the one that has to go."""
    with bed.scheduler(config("global.contract.scheduler.preempt=true")):
        bed.queue("q")
        for node, count in (("gpu-0", 8), ("gpu-1", 4), ("gpu-2", 1)):
            bed.node(node, gpus=8, cpu="64")
            for index in range(count):
                bed.job(f"{node}-{index}", "q", gpus=8 // count, priority="training-low")
            for index in range(count):
                assert bed.runs(f"{node}-{index}")
        assert bed.stays_out("nothing")  # all that run say so
        bed.job("high", "q", gpus=8, cpu="4", priority="training-high")
        assert bed.wait(lambda: bed.evicted("gpu-2-0") == 1)
        assert bed.runs("high")
        assert all(bed.placed(f"gpu-0-{index}") for index in range(8))
        assert all(bed.placed(f"gpu-1-{index}") for index in range(4))
