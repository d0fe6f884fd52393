"""Gangs on real schedulers: with ours a job holds GPUs as a whole or not at all."""

from trainyard_dev.bench import configurations, simulator
from trainyard_dev.bench.harness import Harness
from trainyard_dev.bench.schedulers import scheduler
from trainyard_dev.bench.simulator import Task, Timeline


def _replayed(harness: Harness, name: str) -> Timeline:
    """Two nodes; a takes one of them, b needs both, c would fit beside a."""
    column = configurations.column(name)
    try:
        harness.add_nodes(simulator.nodes(2), effect=column.taint)
        harness.add_queue("default")
        with scheduler(harness, column) as running:
            jobs = [Task("a", 8, 0, 100), Task("b", 16, 10, 50), Task("c", 8, 20, 10), Task("d", 16, 30, 50)]
            return simulator.play(harness, running, column, jobs)
    finally:
        harness.clear()


def test_no_gpu_is_ever_held_by_an_incomplete_gang(harness: Harness) -> None:
    timeline = _replayed(harness, "ours")
    assert timeline.incomplete_gpu_s == 0
    assert all(sample.incomplete == 0 for sample in timeline.samples)
    assert timeline.starts == [(0, "a"), (20, "c"), (100, "b"), (150, "d")]
    assert timeline.makespan_s == 200


def test_without_gangs_a_part_of_a_job_holds_what_another_could_use(harness: Harness) -> None:
    timeline = _replayed(harness, "kube-default")
    assert timeline.incomplete_gpu_s >= 8 * 90  # b, from 10 to 100
    assert (20, "c") not in timeline.starts
