"""Strict order on a real scheduler with the program that it asks: what is behind the first waits, and no more."""

from __future__ import annotations

from collections.abc import Callable

from bed import Bed

Config = Callable[..., str]
STRICT = "global.contract.scheduler.queueingStrategy=StrictFIFO"


def _two_halves(bed: Bed) -> None:
    """Each of two nodes has half its GPUs free, and the oldest waiting job needs a whole one."""
    for name in ("gpu-0", "gpu-1"):
        bed.node(name, gpus=4)
    bed.queue("q")
    for name in ("first", "second"):
        bed.job(name, "q", gpus=3)
        assert bed.runs(name)
    bed.job("head", "q", gpus=4)
    assert bed.stays_out("head")
    bed.job("late", "q", gpus=1)


def test_leftovers_that_the_first_cannot_use_go_to_others_with_submission_order(bed: Bed, config: Config) -> None:
    with bed.scheduler(config("global.contract.scheduler.queueingStrategy=ReservingFIFO")):
        _two_halves(bed)
        assert bed.runs("late")


def test_strict_order_keeps_even_leftovers(bed: Bed, config: Config) -> None:
    with bed.scheduler(config(STRICT)):
        _two_halves(bed)
        assert bed.stays_out("late")
        bed.finish("first")
        assert bed.runs("head")
        assert bed.runs("late")


def test_strict_order_holds_for_what_its_queue_may_not_have(bed: Bed, config: Config) -> None:
    """The queue's own bound keeps the first back, not the cluster; the others of the queue wait all the same."""
    with bed.scheduler(config(STRICT)):
        bed.node("gpu-0", gpus=8)
        bed.queue("q", capability={"cpu": "8", "memory": "32G", "nvidia.com/gpu": "4"})
        bed.job("head", "q", gpus=5)
        assert bed.stays_out("head")
        bed.job("late", "q", gpus=1)
        assert bed.stays_out("late")


def test_strict_order_leaves_other_queues_alone(bed: Bed, config: Config) -> None:
    with bed.scheduler(config(STRICT)):
        _two_halves(bed)
        assert bed.stays_out("late")
        bed.queue("other")
        bed.job("elsewhere", "other", gpus=1)
        assert bed.runs("elsewhere")
        assert bed.stays_out("late")


def test_a_higher_class_goes_first_and_keeps_lower_ones_out(bed: Bed, config: Config) -> None:
    with bed.scheduler(config(STRICT)):
        _two_halves(bed)
        bed.job("urgent", "q", gpus=1, priority="training-high")
        assert bed.runs("urgent")
        bed.job("large", "q", gpus=4, priority="training-high")
        assert bed.stays_out("large")
        for name in ("first", "urgent"):  # which may share a node
            bed.finish(name)
        assert bed.runs("large")
        assert bed.stays_out("head")


def test_nothing_starts_while_nobody_answers(bed: Bed, config: Config) -> None:
    with bed.scheduler(config(STRICT).replace("127.0.0.1:10260", "127.0.0.1:1")):
        bed.node("gpu-0", gpus=4)
        bed.queue("q")
        bed.job("first", "q", gpus=1)
        assert bed.stays_out("first")
