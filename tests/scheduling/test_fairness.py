"""Queues on a real scheduler: who goes first when several want what is free."""

from collections.abc import Callable
from time import sleep

from scheduler_harness import SchedulerHarness

Config = Callable[..., str]


def test_free_gpus_go_to_queues_by_their_weight(cluster: SchedulerHarness, config: Config) -> None:
    """The lighter queue is the older one, and all jobs wait for the same two nodes: age must not decide."""
    with cluster.scheduler(config()):
        cluster.queue("light", weight=1)
        sleep(1.1)  # queues of one second go by name
        cluster.queue("heavy", weight=3)
        for index in range(8):
            cluster.job(f"light{index}", "light", gpus=1)
            cluster.job(f"heavy{index}", "heavy", gpus=1)
        cluster.node("gpu-0", gpus=4)
        cluster.node("gpu-1", gpus=4)
        assert cluster.stays_out("light7")
        assert sum(len(cluster.placed(f"light{index}")) for index in range(8)) == 2
        assert sum(len(cluster.placed(f"heavy{index}")) for index in range(8)) == 6


def test_a_gang_larger_than_its_queues_part_starts_where_it_fits(cluster: SchedulerHarness, config: Config) -> None:
    """Weights say who goes first, not how much a queue may have."""
    with cluster.scheduler(config()):
        cluster.node("gpu-0", gpus=8, cpu="64")
        cluster.queue("light", weight=1)
        cluster.queue("heavy", weight=3)
        cluster.job("gang", "light", pods=4, gpus=2)
        assert cluster.runs("gang", 4)
        cluster.job("waiting", "heavy", gpus=1)
        assert cluster.stays_out("waiting")
        assert len(cluster.placed("gang")) == 4


def test_preempt_takes_the_node_that_costs_the_fewest(cluster: SchedulerHarness, config: Config) -> None:
    """Three nodes are full: of eight small jobs, of four, and of one, which is the one that has to go."""
    with cluster.scheduler(config("global.contract.scheduler.preempt=true")):
        cluster.queue("q")
        for node, count in (("gpu-0", 8), ("gpu-1", 4), ("gpu-2", 1)):
            cluster.node(node, gpus=8, cpu="64")
            for index in range(count):
                cluster.job(f"{node}-{index}", "q", gpus=8 // count, priority="training-low")
            for index in range(count):
                assert cluster.runs(f"{node}-{index}")
        assert cluster.stays_out("nothing")  # all that run say so
        cluster.job("high", "q", gpus=8, cpu="4", priority="training-high")
        assert cluster.wait(lambda: cluster.evicted("gpu-2-0") == 1)
        assert cluster.runs("high")
        assert all(cluster.placed(f"gpu-0-{index}") for index in range(8))
        assert all(cluster.placed(f"gpu-1-{index}") for index in range(4))
