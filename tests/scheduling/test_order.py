"""Strict order on a real scheduler with the program that it asks: what is behind the first waits, and no more."""

from collections.abc import Callable

from scheduler_harness import SchedulerHarness

Config = Callable[..., str]
STRICT = "global.contract.scheduler.queueingStrategy=StrictFIFO"


def _two_halves(cluster: SchedulerHarness) -> None:
    """Each of two nodes has half its GPUs free, and the oldest waiting job needs a whole one."""
    for name in ("gpu-0", "gpu-1"):
        cluster.node(name, gpus=4)
    cluster.queue("q")
    for name in ("first", "second"):
        cluster.job(name, "q", gpus=3)
        assert cluster.runs(name)
    cluster.job("head", "q", gpus=4)
    assert cluster.stays_out("head")
    cluster.job("late", "q", gpus=1)


def test_leftovers_that_the_first_cannot_use_go_to_others_with_submission_order(
    cluster: SchedulerHarness, config: Config
) -> None:
    with cluster.scheduler(config("global.contract.scheduler.queueingStrategy=ReservingFIFO")):
        _two_halves(cluster)
        assert cluster.runs("late")


def test_strict_order_keeps_even_leftovers(cluster: SchedulerHarness, config: Config) -> None:
    with cluster.scheduler(config(STRICT)):
        _two_halves(cluster)
        assert cluster.stays_out("late")
        cluster.finish("first")
        assert cluster.runs("head")
        assert cluster.runs("late")


def test_strict_order_holds_for_what_its_queue_may_not_have(cluster: SchedulerHarness, config: Config) -> None:
    """The queue's own bound keeps the first back, not the cluster; the others of the queue wait all the same."""
    with cluster.scheduler(config(STRICT)):
        cluster.node("gpu-0", gpus=8)
        cluster.queue("q", capability={"cpu": "8", "memory": "32G", "nvidia.com/gpu": "4"})
        cluster.job("head", "q", gpus=5)
        assert cluster.stays_out("head")
        cluster.job("late", "q", gpus=1)
        assert cluster.stays_out("late")


def test_strict_order_leaves_other_queues_alone(cluster: SchedulerHarness, config: Config) -> None:
    with cluster.scheduler(config(STRICT)):
        _two_halves(cluster)
        assert cluster.stays_out("late")
        cluster.queue("other")
        cluster.job("elsewhere", "other", gpus=1)
        assert cluster.runs("elsewhere")
        assert cluster.stays_out("late")


def test_a_higher_class_goes_first_and_keeps_lower_ones_out(cluster: SchedulerHarness, config: Config) -> None:
    with cluster.scheduler(config(STRICT)):
        _two_halves(cluster)
        cluster.job("urgent", "q", gpus=1, priority="training-high")
        assert cluster.runs("urgent")
        cluster.job("large", "q", gpus=4, priority="training-high")
        assert cluster.stays_out("large")
        for name in ("first", "urgent"):  # which may share a node
            cluster.finish(name)
        assert cluster.runs("large")
        assert cluster.stays_out("head")


def test_nothing_starts_while_nobody_answers(cluster: SchedulerHarness, config: Config) -> None:
    with cluster.scheduler(config(STRICT).replace("127.0.0.1:10260", "127.0.0.1:1")):
        cluster.node("gpu-0", gpus=4)
        cluster.queue("q")
        cluster.job("first", "q", gpus=1)
        assert cluster.stays_out("first")
