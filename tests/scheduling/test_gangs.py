"""Gangs on real schedulers: with ours a job holds GPUs as a whole or not at all."""

from __future__ import annotations

from trainyard_dev.bench import columns, lockstep
from trainyard_dev.bench.lockstep import Task, Timeline
from trainyard_dev.bench.schedulers import scheduler
from trainyard_dev.bench.world import World


def _replayed(world: World, name: str) -> Timeline:
    """Two nodes; a takes one of them, b needs both, c would fit beside a."""
    column = columns.column(name)
    try:
        world.add_nodes(lockstep.nodes(2), effect=column.taint)
        world.add_queue("default")
        with scheduler(world, column) as running:
            jobs = [Task("a", 8, 0, 100), Task("b", 16, 10, 50), Task("c", 8, 20, 10), Task("d", 16, 30, 50)]
            return lockstep.play(world, running, column, jobs)
    finally:
        world.clear()


def test_no_gpu_is_ever_held_by_an_incomplete_gang(world: World) -> None:
    timeline = _replayed(world, "ours")
    assert timeline.incomplete_gpu_s == 0
    assert all(sample.incomplete == 0 for sample in timeline.samples)
    assert timeline.starts == [(0, "a"), (20, "c"), (100, "b"), (150, "d")]
    assert timeline.makespan_s == 200


def test_without_gangs_a_part_of_a_job_holds_what_another_could_use(world: World) -> None:
    timeline = _replayed(world, "kube-default")
    assert timeline.incomplete_gpu_s >= 8 * 90  # b, from 10 to 100
    assert (20, "c") not in timeline.starts
