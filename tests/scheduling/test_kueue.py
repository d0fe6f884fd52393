"""Kueue as the benchmarks run it: groups get quota whole and in order, and settled means that nothing more happens."""

from time import sleep

import pytest
from scheduler_harness import SchedulerHarness

from trainyard_dev.bench import objects
from trainyard_dev.bench.configurations import column
from trainyard_dev.bench.harness import Harness
from trainyard_dev.bench.kueue_setup import ORDER_S, WORKLOADS
from trainyard_dev.bench.schedulers import scheduler
from trainyard_dev.bench.traces import Node, Pod
from trainyard_dev.tools.build import is_built
from trainyard_dev.versions import load

pytestmark = pytest.mark.skipif(
    not is_built(load().tools["kueue"]), reason="Kueue is not built: bin/trainyard tools build --for bench"
)


def submit(harness: Harness, job: str, pods: int, gpus: int) -> None:
    """A group of equal pods."""
    asked = [Pod(f"{job}-{index}", 1000, 1024, gpus) for index in range(pods)]
    harness.create([objects.pod(one, "kueue", group=job, of=pods, labels={"job": job}) for one in asked])
    harness.sees(one.name for one in asked)


def bound(harness: Harness) -> dict[str, int]:
    """How many pods of each job have a node; jobs without one are left out."""
    jobs = [pod.labels["job"] for pod in harness.pods.values() if pod.node]
    return {job: jobs.count(job) for job in set(jobs)}


def test_a_group_waits_whole_and_whoever_is_behind_it_too(cluster: SchedulerHarness) -> None:
    harness = cluster.harness
    try:
        harness.add_nodes([Node(f"n{index}", 16_000, 64_000, 8) for index in range(4)])
        with scheduler(harness, column("kueue")) as running:
            submit(harness, "first", 2, 8)
            running.settle(harness)
            assert bound(harness) == {"first": 2}
            submit(harness, "large", 4, 8)
            running.settle(harness)
            sleep(ORDER_S)
            submit(harness, "small", 1, 8)
            running.settle(harness)
            assert bound(harness) == {"first": 2}
            with running.process.paused():
                harness.delete(["first-0", "first-1"])
                harness.delete(["first"], WORKLOADS)
                harness.sees(["first-0", "first-1"], gone=True)
            running.settle(harness)
            assert bound(harness) == {"large": 4}
    finally:
        harness.clear()
