"""Elastic jobs on the real scheduler: a gang of their least size, and further pods that come and go.

The names of the jobs have a hyphen, as those of `trainyard train`: then Volcano goes by the number behind the last one.
"""

from collections.abc import Callable

from scheduler_harness import SchedulerHarness

Config = Callable[..., str]
PREEMPT, RECLAIM = "global.contract.scheduler.preempt=true", "global.contract.scheduler.reclaim=true"
JOB, OTHER = "try-elastic", "try-other"
SHARE = {"cpu": "0", "memory": "0", "nvidia.com/gpu": "4"}


def _elastic(cluster: SchedulerHarness, queue: str, *, pods: int = 4, least: int = 2, priority: str = "") -> None:
    cluster.job(JOB, queue, pods=pods, gpus=1, least=least, priority=priority)


def _makes_room(cluster: SchedulerHarness, pods: int) -> bool:
    """Whether that many pods of the other job run, once those evicted from the elastic job are gone."""
    return cluster.wait(lambda: cluster.evicted(JOB) >= 0 and len(cluster.placed(OTHER)) == pods)


def test_it_starts_with_its_least_size_and_takes_what_comes_free(cluster: SchedulerHarness, config: Config) -> None:
    with cluster.scheduler(config()):
        cluster.node("gpu-0", gpus=8)
        cluster.queue("q")
        cluster.job(OTHER, "q", pods=6, gpus=1)
        assert cluster.runs(OTHER, 6)
        _elastic(cluster, "q")
        assert cluster.runs(JOB, 2)
        assert cluster.numbers(JOB) == [0, 1]
        cluster.finish(OTHER)
        assert cluster.runs(JOB, 4)


def test_below_its_least_size_it_holds_nothing(cluster: SchedulerHarness, config: Config) -> None:
    with cluster.scheduler(config()):
        cluster.node("gpu-0", gpus=8)
        cluster.queue("q")
        cluster.job(OTHER, "q", pods=7, gpus=1)
        assert cluster.runs(OTHER, 7)
        _elastic(cluster, "q")
        assert cluster.stays_out(JOB)


def test_a_higher_class_takes_the_highest_numbers(cluster: SchedulerHarness, config: Config) -> None:
    with cluster.scheduler(config(PREEMPT)):
        cluster.node("gpu-0", gpus=4)
        cluster.node("gpu-1", gpus=4)
        cluster.queue("q")
        cluster.job("try-holder", "q", gpus=4, priority="training-high")  # what is free isn't counted in, so nothing is
        assert cluster.runs("try-holder")
        _elastic(cluster, "q", priority="training-low")
        assert cluster.runs(JOB, 4)
        cluster.job(OTHER, "q", pods=2, gpus=1, priority="training-high")
        assert _makes_room(cluster, 2)
        assert cluster.numbers(JOB) == [0, 1]


def test_a_queue_that_claims_its_share_takes_no_more_than_that(cluster: SchedulerHarness, config: Config) -> None:
    """Which pods go is not said: for each that claims, Volcano asks a random part of those that may be taken."""
    with cluster.scheduler(config(RECLAIM)):
        cluster.node("gpu-0", gpus=8)
        cluster.queue("a", deserved=SHARE)
        cluster.queue("b", deserved=SHARE)
        _elastic(cluster, "b", pods=8)
        assert cluster.runs(JOB, 8)
        cluster.job(OTHER, "a", pods=4, gpus=1)
        assert _makes_room(cluster, 4)
        assert len(cluster.placed(JOB)) == 4


def test_its_further_pods_take_nothing_from_anybody(cluster: SchedulerHarness, config: Config) -> None:
    with cluster.scheduler(config(PREEMPT)):
        cluster.node("gpu-0", gpus=4)
        cluster.queue("q")
        cluster.job(OTHER, "q", pods=2, gpus=1, priority="training-low")
        assert cluster.runs(OTHER, 2)
        _elastic(cluster, "q", priority="training-high")
        assert cluster.runs(JOB, 2)
        assert cluster.wait(lambda: cluster.unschedulable(JOB) > 0)
        assert cluster.evicted(OTHER) == 0 and len(cluster.placed(OTHER)) == 2
