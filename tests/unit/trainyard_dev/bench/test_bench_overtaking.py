"""Jobs that overtook others, and the delays, on cases that can be counted by hand."""

from dataclasses import replace

from trainyard_dev.bench import overtaking
from trainyard_dev.bench.overtaking import JobRun

NODES = {"n0": 8, "n1": 8}


def job(rank: int, gpus: int, start_s: float, end_s: float, nodes: dict[str, int], *, priority: int = 0) -> JobRun:
    return JobRun(rank, f"j{rank}", gpus, "q", priority, 0.0, start_s, end_s, nodes)


RUNNING = job(0, 4, 0, 10, {"n0": 4})
LARGE = job(1, 16, 20, 30, {"n0": 8, "n1": 8})  # waits for both nodes
SMALL = job(2, 4, 0, 20, {"n0": 4})  # on the rest of a node that LARGE needs
FRIENDLY = job(2, 4, 0, 5, {"n0": 4})  # gone before LARGE could have begun


def names(pairs: list[tuple[JobRun, JobRun]]) -> list[tuple[str, str]]:
    return [(i.name, j.name) for i, j in pairs]


def test_a_job_that_starts_while_an_earlier_one_waits_breaks_the_order() -> None:
    assert names(overtaking.violations([RUNNING, LARGE, SMALL])) == [("j1", "j2")]


def test_jobs_that_start_at_one_moment_are_in_order() -> None:
    assert overtaking.violations([RUNNING, replace(LARGE, start_s=0.0), SMALL]) == []


def test_other_queues_and_jobs_that_came_after_are_not_compared() -> None:
    assert overtaking.violations([RUNNING, replace(LARGE, queue="other"), SMALL]) == []
    assert overtaking.violations([RUNNING, replace(LARGE, submit_s=5.0), SMALL]) == []


def test_a_job_that_never_starts_is_passed_too() -> None:
    assert names(overtaking.violations([RUNNING, replace(LARGE, start_s=float("inf")), SMALL])) == [("j1", "j2")]


def test_classes_are_compared_by_priority_alone() -> None:
    high = replace(SMALL, rank=3, priority=10, start_s=12.0)
    low = replace(LARGE, start_s=11.0)
    assert overtaking.violations([low, high]) == []
    assert names(overtaking.inversions([low, high])) == [(high.name, low.name)]


def test_a_passer_that_holds_a_gpu_of_the_first_delays_it() -> None:
    [delay] = overtaking.delays([RUNNING, LARGE, SMALL], NODES, 8)
    assert (delay.job.name, delay.could_s, [j.name for j in delay.passers]) == ("j1", 10.0, ["j2"])


def test_a_passer_that_is_gone_in_time_delays_nobody() -> None:
    assert overtaking.delays([RUNNING, replace(LARGE, start_s=10.0), FRIENDLY], NODES, 8) == []


def test_a_job_is_not_delayed_while_those_before_it_would_not_leave_it_room() -> None:
    """Both came before SMALL; at 10 only one of them fits, and the second is not counted."""
    second = job(3, 16, 40, 50, {"n0": 8, "n1": 8})
    passer = replace(SMALL, rank=4, end_s=20)
    found = overtaking.delays([RUNNING, LARGE, second, passer], NODES, 8)
    assert [delay.job.name for delay in found] == ["j1"]


def test_pods_go_to_the_fullest_node_that_has_room() -> None:
    free = {"n0": 8, "n1": 3}
    assert overtaking.fit(free, 2, 8)
    assert free == {"n0": 8, "n1": 1}
    assert not overtaking.fit(free, 16, 8)
