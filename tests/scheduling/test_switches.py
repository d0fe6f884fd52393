"""The contract's switches on a real scheduler: what each does, and that the default does without."""

from __future__ import annotations

from collections.abc import Callable
from time import sleep

from bed import Bed

Config = Callable[..., str]
POOL = (
    "global.contract.nodePools[0].name=gpu",
    "global.contract.nodePools[0].kind=gpu",
    "global.contract.nodePools[0].labels.trainyard\\.io/pool=gpu",
    "global.contract.nodePools[0].gpu.resource=nvidia.com/gpu",
)
RESERVE = (
    *POOL,
    "global.contract.nodePools[0].gpu.reserve.cpu=3500m",
    "global.contract.nodePools[0].gpu.reserve.memory=8G",
)
SHARE = {"cpu": "8", "memory": "32G", "nvidia.com/gpu": "4"}


def test_a_pod_without_gpus_takes_a_gpu_node_whole_by_default(bed: Bed, config: Config) -> None:
    with bed.scheduler(config()):
        bed.node("gpu-0", gpus=4)
        bed.queue("q")
        bed.job("cpu", "q", cpu="14")
        assert bed.runs("cpu")


def test_reserve_keeps_cpu_for_every_free_gpu(bed: Bed, config: Config) -> None:
    with bed.scheduler(config(*RESERVE)):
        bed.node("gpu-0", gpus=4, cpu="16")
        bed.queue("q")
        bed.job("large", "q", cpu="3")  # leaves 13, less than 4 times 3.5
        assert bed.stays_out("large")
        bed.job("small", "q", cpu="2")  # leaves 14
        assert bed.runs("small")
        bed.job("training", "q", gpus=4, cpu="12")
        assert bed.runs("training")
        bed.job("rest", "q", cpu="2")  # no GPU is free any more, so nothing is kept
        assert bed.runs("rest")


def test_reserve_keeps_memory_in_the_unit_that_was_written(bed: Bed, config: Config) -> None:
    with bed.scheduler(config(*RESERVE)):
        bed.node("gpu-0", gpus=4, cpu="64", memory="64G")
        bed.queue("q")
        bed.job("large", "q", memory="33G")
        assert bed.stays_out("large")
        bed.job("small", "q", memory="31G")
        assert bed.runs("small")


def test_a_gang_asks_for_nodes_where_there_are_none_and_runs_when_they_come(bed: Bed, config: Config) -> None:
    """What scaling from zero stands on: an autoscaler looks for pods that say Unschedulable."""
    with bed.scheduler(config()):
        bed.node("cpu-0")
        bed.queue("q")
        bed.job("gang", "q", pods=2, gpus=4)
        assert bed.wait(lambda: bed.unschedulable("gang") == 2)
        bed.node("gpu-0", gpus=4, taint="NoSchedule")
        assert bed.wait(
            lambda: bed.unschedulable("gang") == 1
        )  # one would fit now and says so, but waits for the other
        assert bed.stays_out("gang")
        bed.node("gpu-1", gpus=4, taint="NoSchedule")
        assert bed.runs("gang", 2)


def test_preempt_evicts_a_lower_priority_class_only_where_it_is_on(bed: Bed, config: Config) -> None:
    for switch in ("false", "true"):
        with bed.scheduler(config(f"global.contract.scheduler.preempt={switch}")):
            bed.node("gpu-0", gpus=4)
            bed.queue("q")
            bed.job("low", "q", pods=2, gpus=2, priority="training-low")
            assert bed.runs("low", 2)
            bed.job("high", "q", gpus=4, cpu="4", priority="training-high")
            if switch == "false":
                assert bed.stays_out("high")
            else:
                assert bed.wait(lambda: bed.evicted("low") > 0 or bool(bed.placed("high")))
                assert bed.wait(lambda: bed.evicted("low") == 0 and len(bed.placed("high")) == 1)
                assert bed.placed("low") == []


def _smaller_behind_larger(bed: Bed) -> None:
    """Half a node is free; the oldest job waits for a whole one, a younger one would fit."""
    bed.node("gpu-0", gpus=4)
    bed.queue("q")
    bed.job("first", "q", gpus=2)
    assert bed.runs("first")
    bed.job("head", "q", pods=2, gpus=2)
    assert bed.stays_out("head")
    sleep(1.1)  # with submission order a job holds what is free once it has waited for a second
    bed.job("late", "q", gpus=1)


def test_smaller_jobs_pass_one_that_does_not_fit_by_default(bed: Bed, config: Config) -> None:
    with bed.scheduler(config()):
        _smaller_behind_larger(bed)
        assert bed.runs("late")


def test_submission_order_keeps_what_is_free_for_the_oldest(bed: Bed, config: Config) -> None:
    with bed.scheduler(config("global.contract.scheduler.queueingStrategy=ReservingFIFO")):
        _smaller_behind_larger(bed)
        assert bed.stays_out("late")
        bed.finish("first")
        assert bed.runs("head", 2)
        assert bed.stays_out("late")


def _full(bed: Bed) -> None:
    """Queue b has taken the whole node, in a gang of two; a, which deserves half of it, wants its own."""
    bed.node("gpu-0", gpus=8)
    bed.queue("a", deserved=SHARE)
    bed.queue("b", deserved=SHARE)
    for index in range(4):
        bed.job(f"b{index}", "b", pods=2, gpus=1)
        assert bed.runs(f"b{index}", 2)
    bed.job("a0", "a", pods=2, gpus=2)


def _lost(bed: Bed) -> int:
    """GPUs that b has lost."""
    for index in range(4):
        bed.evicted(f"b{index}")
    return 8 - sum(len(bed.placed(f"b{index}")) for index in range(4))


def test_nothing_is_taken_back_by_default(bed: Bed, config: Config) -> None:
    with bed.scheduler(config()):
        _full(bed)
        assert bed.stays_out("a0")
        assert _lost(bed) == 0


def test_reclaim_gives_a_queue_its_share_and_no_more(bed: Bed, config: Config) -> None:
    with bed.scheduler(config("global.contract.scheduler.reclaim=true")):
        _full(bed)
        assert bed.wait(lambda: _lost(bed) > 0)
        assert bed.wait(lambda: _lost(bed) >= 0 and len(bed.placed("a0")) == 2)
        assert _lost(bed) == 4
        bed.job("a1", "a", gpus=1)  # above its share: it must wait
        assert bed.stays_out("a1")
        assert _lost(bed) == 4


def test_reclaim_leaves_queues_alone_that_are_not_reclaimable(bed: Bed, config: Config) -> None:
    with bed.scheduler(config("global.contract.scheduler.reclaim=true")):
        bed.node("gpu-0", gpus=8)
        bed.queue("a", deserved=SHARE)
        bed.queue("b", deserved=SHARE, reclaimable=False)
        bed.job("b0", "b", pods=8, gpus=1)
        assert bed.runs("b0", 8)
        bed.job("a0", "a", gpus=4)
        assert bed.stays_out("a0")
        assert bed.evicted("b0") == 0


def test_reclaim_takes_nothing_from_a_queue_within_its_share(bed: Bed, config: Config) -> None:
    """Also not pods that their gang could do without, which gang would name before capacity is asked."""
    with bed.scheduler(config("global.contract.scheduler.reclaim=true")):
        bed.node("gpu-0", gpus=8)
        for name in ("a", "b"):
            bed.queue(name, deserved=SHARE)
        bed.queue("c", reclaimable=False)
        bed.job("c0", "c", pods=4, gpus=1)
        bed.job("b0", "b", pods=4, gpus=1, least=1)
        assert bed.runs("c0", 4)
        assert bed.runs("b0", 4)
        bed.job("a0", "a", gpus=1)
        assert bed.stays_out("a0")
        assert bed.evicted("b0") == 0
