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
