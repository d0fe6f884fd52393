"""Fairness in simulation: weighted max-min, its distance, the fewest evictions."""

import random
from itertools import combinations

import pytest

from trainyard_dev.bench import fairness, layouts, shares
from trainyard_dev.bench.layouts import Layout, RunningJob
from trainyard_dev.bench.results import Result, Run
from trainyard_dev.bench.simulator import Sample, Task, Timeline

WEIGHTS = {"a": 1, "b": 1, "c": 2}


@pytest.mark.parametrize(
    ("asked", "fair"),
    [
        ({"a": 100, "b": 100, "c": 100}, {"a": 2, "b": 2, "c": 4}),
        ({"a": 1, "b": 100, "c": 100}, {"a": 1, "b": 7 / 3, "c": 14 / 3}),  # what a leaves goes to others by weight
        ({"a": 0, "b": 3, "c": 100}, {"a": 0, "b": 8 / 3, "c": 16 / 3}),
        ({"a": 1, "b": 2, "c": 3}, {"a": 1, "b": 2, "c": 3}),  # there is enough for all
        ({"a": 5, "b": 0, "c": 0}, {"a": 5, "b": 0, "c": 0}),
        ({"a": 50, "b": 0, "c": 0}, {"a": 8, "b": 0, "c": 0}),
        ({}, {}),
    ],
)
def test_max_min(asked: dict[str, float], fair: dict[str, float]) -> None:
    assert shares.max_min(asked, WEIGHTS, 8) == pytest.approx(fair)


def test_nobody_can_have_more_without_one_who_has_less_giving_it_up() -> None:
    rng = random.Random(1)
    for _ in range(200):
        weights = {name: rng.randint(1, 5) for name in "abcde"}
        asked = {name: rng.randint(0, 30) for name in weights}
        got = shares.max_min(asked, weights, 40)
        assert sum(got.values()) == pytest.approx(min(40, sum(asked.values())))
        unmet = {name for name in asked if got[name] < asked[name] - 1e-6}
        for name in unmet:  # everybody else has at most as much for his weight, unless that is all he asked for
            assert all(got[other] / weights[other] <= got[name] / weights[name] + 1e-6 for other in got if got[other])


def test_jain() -> None:
    assert shares.jain([1, 1, 1]) == 1
    assert shares.jain([3, 0, 0]) == pytest.approx(1 / 3)
    assert shares.jain([]) == shares.jain([0, 0]) == 1


def test_only_time_in_which_somebody_must_do_without_counts() -> None:
    timeline = Timeline([], [
        Sample(0.0, {"a": 4, "b": 0}, {"a": 4, "b": 0}, 0),
        Sample(10.0, {"a": 8, "b": 0}, {"a": 8, "b": 8}, 0),
        Sample(20.0, {"a": 4, "b": 4}, {"a": 8, "b": 8}, 0),
        Sample(50.0, {"a": 0, "b": 0}, {"a": 0, "b": 0}, 0),
    ])  # fmt: skip
    found = shares.fairness(timeline, WEIGHTS, 8)
    assert found.contended_s == 40
    assert found.distance == pytest.approx(10 * 1.0 / 40)
    assert found.jain == pytest.approx((10 * 0.5 + 30 * 1.0) / 40)
    assert found.used == 1
    assert shares.fairness(Timeline([]), WEIGHTS, 8) == shares.Fairness(0.0, 1.0, 0.0, 0.0)


def test_the_reference_gives_free_gpus_by_weight_and_leaves_nothing_free_that_fits() -> None:
    tasks = [Task(f"j{n:02d}", 1, 0.0, 10.0 if n < 8 else 5.0, "abc"[n % 3]) for n in range(16)]
    timeline = shares.reference(tasks, WEIGHTS, 1, 8)
    assert timeline.samples[0].used == {"a": 2, "b": 2, "c": 4}
    assert timeline.samples[-1].used == {"a": 0, "b": 0, "c": 0}
    assert not timeline.stuck
    assert all(sum(sample.used.values()) == min(8, sum(sample.asked.values())) for sample in timeline.samples)
    assert all(task.start_s is None for task in tasks)


def test_the_reference_says_which_jobs_fit_nowhere() -> None:
    small = Task("j0", 4, 0.0, 1.0, "a")
    large = Task("j1", 16, 0.0, 1.0, "a")
    assert shares.reference([large, small], WEIGHTS, 1, 8).stuck == ["j1"]


def _brute(layout: Layout) -> tuple[int, int, float]:
    """All sets of pods, and all of jobs, one by one."""
    pods = [(job.name, place, job.each) for job in layout.jobs for place in job.places]

    def fits(gone: list[tuple[str, int, int]]) -> bool:
        free = layout.free
        for _, node, gpus in gone:
            free[node] += gpus
        return sum(room // layout.each for room in free) >= layout.pods

    fewest = next(n for n in range(len(pods) + 1) if any(fits(list(some)) for some in combinations(pods, n)))
    sets = [some for n in range(len(layout.jobs) + 1) for some in combinations(layout.jobs, n)]
    good = [some for some in sets if fits([pod for pod in pods if pod[0] in {job.name for job in some}])]
    return fewest, min(map(len, good)), min(sum(job.gpu_hours for job in some) for some in good)


def test_the_fewest_that_must_leave_are_found() -> None:
    rng = random.Random(7)
    for _ in range(15):
        layout = layouts.layout(rng, nodes=2)
        found = layouts.least(layout)
        assert (found.pods, found.jobs, pytest.approx(found.gpu_hours)) == _brute(layout)


def test_layouts_are_full_sound_and_the_same_for_a_seed() -> None:
    one, other = random.Random("x"), random.Random("x")
    for _ in range(20):
        layout = layouts.layout(one)
        assert layout == layouts.layout(other)
        assert all(0 <= room <= layouts.NODE_GPUS for room in layout.free)
        assert sum(room // layout.each for room in layout.free) < layout.pods
        assert sum(layout.free) <= layouts.NODE_GPUS // 2
        assert [job.hours for job in layout.jobs] == sorted((job.hours for job in layout.jobs), reverse=True)


def test_a_job_that_loses_a_pod_loses_all_its_work() -> None:
    layout = Layout(2, (RunningJob("j00", (0, 1), 8, 10.0),), 1, 8)
    assert layouts.cost(layout, ["j00-1"]) == layouts.FewestMoves(1, 1, 160.0)
    assert layouts.least(layout) == layouts.FewestMoves(1, 1, 160.0)


def test_every_run_of_the_plan_is_named_once_and_the_reduced_one_is_small() -> None:
    for full in (False, True):
        runs = fairness.plan(full)
        assert len({run.id for run in runs}) == len(runs)
    assert {run.seed for run in fairness.plan(False)} == {1}
    assert {run.seed for run in fairness.plan(True)} == {1, 2, 3, 4, 5}


def result(case: str, column: str, seed: int, values: dict[str, float]) -> Result:
    run = Run("fairness", case, column, seed)
    return Result(run, values, "0", {}, 1.0, run.command)


def test_figures_and_section_come_from_results() -> None:
    found = fairness.figures([
        result("trace1_pr@60", "ours", 1, {"distance": 0.2, "distance_by_order_alone": 0.1, "jain": 0.9}),
        result("trace1_pr@60", "ours", 2, {"distance": 0.4, "distance_by_order_alone": 0.1, "jain": 0.9}),
        result("claims+share", "ours-reclaim", 1, {"evicted_pods": 12, "least_pods": 5, "served_percent": 100}),
    ])  # fmt: skip
    by_id = {figure.id: figure for figure in found}
    assert by_id["fairness.trace1_pr@60.ours.distance"].value == pytest.approx(0.3)
    assert by_id["fairness.claims+share.ours-reclaim.evicted_pods"].bound == 5
    text = fairness.section(found)
    assert "| `ours` | 0.3 (0.2–0.4) |" in text
    assert "claims+share" in text
    assert "not served" not in text
    some = fairness.figures([result("claims+share", "ours-reclaim", 1, {"served_percent": 90})])
    assert "are not served if every running pod has 8 GPUs" in fairness.section(some)


def test_the_section_says_who_is_fair_by_idle_gpus_and_where_taking_back_finds_no_end() -> None:
    names = ("distance", "used_percent", "circles", "never_finished")
    measured = {"ours": (0.5, 95, 0, 0), "volcano-default": (0.3, 80, 0, 0), "kube-default": (0.4, 94, 0, 0),
                "ours-reclaim": (0.7, 40, 24, 69)}  # fmt: skip
    found = [result("trace3@150", column, 1, dict(zip(names, one, strict=True))) for column, one in measured.items()]
    reported = fairness.section(fairness.figures(found))
    assert "| `volcano-default` | 0.3 |" in reported and "| `volcano-default` | 80 |" in reported
    assert "| `ours-reclaim` | 69 |" in reported
    assert "Because reclaiming may not end, the chart disables it by default" in reported
