"""The contract's switches on a real scheduler: what each does, and that the default does without."""

from collections.abc import Callable
from time import sleep

from scheduler_harness import SchedulerHarness

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


def test_a_pod_without_gpus_takes_a_gpu_node_whole_by_default(cluster: SchedulerHarness, config: Config) -> None:
    with cluster.scheduler(config()):
        cluster.node("gpu-0", gpus=4)
        cluster.queue("q")
        cluster.job("cpu", "q", cpu="14")
        assert cluster.runs("cpu")


def test_reserve_keeps_cpu_for_every_free_gpu(cluster: SchedulerHarness, config: Config) -> None:
    with cluster.scheduler(config(*RESERVE)):
        cluster.node("gpu-0", gpus=4, cpu="16")
        cluster.queue("q")
        cluster.job("large", "q", cpu="3")  # leaves 13, less than 4 times 3.5
        assert cluster.stays_out("large")
        cluster.job("small", "q", cpu="2")  # leaves 14
        assert cluster.runs("small")
        cluster.job("training", "q", gpus=4, cpu="12")
        assert cluster.runs("training")
        cluster.job("rest", "q", cpu="2")  # no GPU is free any more, so nothing is kept
        assert cluster.runs("rest")


def test_reserve_keeps_memory_in_the_unit_that_was_written(cluster: SchedulerHarness, config: Config) -> None:
    with cluster.scheduler(config(*RESERVE)):
        cluster.node("gpu-0", gpus=4, cpu="64", memory="64G")
        cluster.queue("q")
        cluster.job("large", "q", memory="33G")
        assert cluster.stays_out("large")
        cluster.job("small", "q", memory="31G")
        assert cluster.runs("small")


def test_a_gang_asks_for_nodes_where_there_are_none_and_runs_when_they_come(
    cluster: SchedulerHarness, config: Config
) -> None:
    """What scaling from zero stands on: an autoscaler looks for pods that say Unschedulable."""
    with cluster.scheduler(config()):
        cluster.node("cpu-0")
        cluster.queue("q")
        cluster.job("gang", "q", pods=2, gpus=4)
        assert cluster.wait(lambda: cluster.unschedulable("gang") == 2)
        cluster.node("gpu-0", gpus=4, taint="NoSchedule")
        assert cluster.wait(
            lambda: cluster.unschedulable("gang") == 1
        )  # one would fit now and says so, but waits for the other
        assert cluster.stays_out("gang")
        cluster.node("gpu-1", gpus=4, taint="NoSchedule")
        assert cluster.runs("gang", 2)


def test_preempt_evicts_a_lower_priority_class_only_where_it_is_on(cluster: SchedulerHarness, config: Config) -> None:
    for switch in ("false", "true"):
        with cluster.scheduler(config(f"global.contract.scheduler.preempt={switch}")):
            cluster.node("gpu-0", gpus=4)
            cluster.queue("q")
            cluster.job("low", "q", pods=2, gpus=2, priority="training-low")
            assert cluster.runs("low", 2)
            cluster.job("high", "q", gpus=4, cpu="4", priority="training-high")
            if switch == "false":
                assert cluster.stays_out("high")
            else:
                assert cluster.wait(lambda: cluster.evicted("low") > 0 or bool(cluster.placed("high")))
                assert cluster.wait(lambda: cluster.evicted("low") == 0 and len(cluster.placed("high")) == 1)
                assert cluster.placed("low") == []


def _smaller_behind_larger(cluster: SchedulerHarness) -> None:
    """Half a node is free; the oldest job waits for a whole one, a younger one would fit."""
    cluster.node("gpu-0", gpus=4)
    cluster.queue("q")
    cluster.job("first", "q", gpus=2)
    assert cluster.runs("first")
    cluster.job("head", "q", pods=2, gpus=2)
    assert cluster.stays_out("head")
    sleep(1.1)  # with submission order a job holds what is free once it has waited for a second
    cluster.job("late", "q", gpus=1)


def test_smaller_jobs_pass_one_that_does_not_fit_by_default(cluster: SchedulerHarness, config: Config) -> None:
    with cluster.scheduler(config()):
        _smaller_behind_larger(cluster)
        assert cluster.runs("late")


def test_submission_order_keeps_what_is_free_for_the_oldest(cluster: SchedulerHarness, config: Config) -> None:
    with cluster.scheduler(config("global.contract.scheduler.queueingStrategy=ReservingFIFO")):
        _smaller_behind_larger(cluster)
        assert cluster.stays_out("late")
        cluster.finish("first")
        assert cluster.runs("head", 2)
        assert cluster.stays_out("late")


def _full(cluster: SchedulerHarness) -> None:
    """Queue b has taken the whole node, in a gang of two; a, which deserves half of it, wants its own."""
    cluster.node("gpu-0", gpus=8)
    cluster.queue("a", deserved=SHARE)
    cluster.queue("b", deserved=SHARE)
    for index in range(4):
        cluster.job(f"b{index}", "b", pods=2, gpus=1)
        assert cluster.runs(f"b{index}", 2)
    cluster.job("a0", "a", pods=2, gpus=2)


def _lost(cluster: SchedulerHarness) -> int:
    """GPUs that b has lost."""
    for index in range(4):
        cluster.evicted(f"b{index}")
    return 8 - sum(len(cluster.placed(f"b{index}")) for index in range(4))


def test_nothing_is_taken_back_by_default(cluster: SchedulerHarness, config: Config) -> None:
    with cluster.scheduler(config()):
        _full(cluster)
        assert cluster.stays_out("a0")
        assert _lost(cluster) == 0


def test_reclaim_gives_a_queue_its_share_and_no_more(cluster: SchedulerHarness, config: Config) -> None:
    with cluster.scheduler(config("global.contract.scheduler.reclaim=true")):
        _full(cluster)
        assert cluster.wait(lambda: _lost(cluster) > 0)
        assert cluster.wait(lambda: _lost(cluster) >= 0 and len(cluster.placed("a0")) == 2)
        assert _lost(cluster) == 4
        cluster.job("a1", "a", gpus=1)  # above its share: it must wait
        assert cluster.stays_out("a1")
        assert _lost(cluster) == 4


def test_reclaim_leaves_queues_alone_that_are_not_reclaimable(cluster: SchedulerHarness, config: Config) -> None:
    with cluster.scheduler(config("global.contract.scheduler.reclaim=true")):
        cluster.node("gpu-0", gpus=8)
        cluster.queue("a", deserved=SHARE)
        cluster.queue("b", deserved=SHARE, reclaimable=False)
        cluster.job("b0", "b", pods=8, gpus=1)
        assert cluster.runs("b0", 8)
        cluster.job("a0", "a", gpus=4)
        assert cluster.stays_out("a0")
        assert cluster.evicted("b0") == 0


def test_reclaim_takes_nothing_from_a_queue_within_its_share(cluster: SchedulerHarness, config: Config) -> None:
    """Also not pods that their gang could do without, which gang would name before capacity is asked."""
    with cluster.scheduler(config("global.contract.scheduler.reclaim=true")):
        cluster.node("gpu-0", gpus=8)
        for name in ("a", "b"):
            cluster.queue(name, deserved=SHARE)
        cluster.queue("c", reclaimable=False)
        cluster.job("c0", "c", pods=4, gpus=1)
        cluster.job("b0", "b", pods=4, gpus=1, least=1)
        assert cluster.runs("c0", 4)
        assert cluster.runs("b0", 4)
        cluster.job("a0", "a", gpus=1)
        assert cluster.stays_out("a0")
        assert cluster.evicted("b0") == 0
