"""The bench of gangs: its bound, its simulated scheduler, its values and its text."""

import re
from dataclasses import replace
from pathlib import Path

import pytest

from trainyard_dev.bench import gangs, offline, published
from trainyard_dev.bench.results import Figure, Result, Run
from trainyard_dev.bench.simulator import Sample, Task, Timeline

HEAD = "job_id,num_gpu,submit_time,duration\n"


def _ended(name: str, gpus: int, start: float, duration: float, submit: float = 0) -> Task:
    return Task(name, gpus, submit, duration, first_s=start, start_s=start, end_s=start + duration)


def test_the_bound_counts_what_is_still_to_come() -> None:
    jobs = [Task("a", 64, 0, 10), Task("b", 32, 100, 30), Task("c", 64, 100, 5)]
    assert offline.makespan_bound(jobs, 64) == 130
    assert offline.makespan_bound([*jobs, Task("d", 64, 100, 20)], 64) == 140


def test_the_scheduler_on_paper_lets_smaller_jobs_pass_and_keeps_pods_on_nodes() -> None:
    jobs = [Task("a", 4, 0, 10), Task("b", 4, 0, 20), Task("c", 16, 0, 5), Task("d", 8, 0, 5)]
    assert offline.starts(jobs, 2) == {"a": 0, "b": 0, "d": 0, "c": 20}
    spread = [Task("a", 5, 0, 10), Task("b", 5, 0, 10), Task("c", 6, 0, 10)]
    assert offline.starts(spread, 2) == {"a": 0, "b": 0, "c": 10}


def test_the_order_says_who_starts_first() -> None:
    jobs = [Task("a", 8, 0, 1), Task("b", 8, 0, 1), Task("c", 8, 0, 10)]
    assert offline.makespan(jobs, offline.starts(jobs, 2)) == 11
    assert offline.starts(jobs[1:], 1, order=offline.shortest) == {"b": 0, "c": 1}


def test_seeds_deal_only_jobs_of_the_same_moment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRAINYARD_DATA", str(tmp_path))
    (tmp_path / "philly").mkdir()
    same = "".join(f"{index},{index + 1},0,{1000 * index}\n" for index in range(8))
    (tmp_path / "philly" / "trace3_pr.csv").write_text(HEAD + same + "8,1,5000,1000\n")
    dealt = {seed: gangs.dealt("trace3_pr", None, seed) for seed in (1, 2)}
    assert [task.name for task in dealt[1]] == [task.name for task in dealt[2]] == [f"j{i:05d}" for i in range(9)]
    assert [task.gpus for task in dealt[1]] != [task.gpus for task in dealt[2]]
    assert [(task.gpus, task.submit_s) for task in (dealt[1][-1], dealt[2][-1])] == [(1, 5), (1, 5)]
    assert dealt[1] == gangs.dealt("trace3_pr", None, 1)


def test_ranks_are_values_that_occurred() -> None:
    assert [gangs.rank([1, 2, 3, 4], share) for share in (0.5, 0.75, 0.99)] == [2, 3, 4]
    assert gangs.rank([7], 0.99) == 7


def _timeline() -> Timeline:
    jobs = [_ended("a", 64, 0, 3600), _ended("b", 32, 3600, 3600), _ended("c", 8, 3600, 3600)]
    samples = [
        Sample(0, {"default": 64}, {"default": 104}, 0),
        Sample(3600, {"default": 40}, {"default": 40}, 0),
        Sample(7200, {}, {}, 0),
    ]
    return Timeline(jobs, samples)


def test_values_of_a_replay() -> None:
    values = gangs.judged(_timeline())
    assert values["makespan"] == pytest.approx(0.0072)
    assert values["useful"] == 100
    assert values["delay_mean"] == pytest.approx(2 / 3)
    assert [values[name] for name in ("held", "held_for_ever", "finished")] == [0, 0, 100]


def _deadlock() -> Timeline:
    timeline = _timeline()
    timeline.tasks[1].first_s = timeline.tasks[1].start_s = timeline.tasks[1].end_s = None
    timeline.stuck = ["b"]
    timeline.samples[1] = Sample(3600, {"default": 40}, {"default": 72}, 32)
    timeline.samples[2] = Sample(7200, {"default": 24}, {"default": 32}, 24)
    return timeline


def test_a_deadlock_has_no_makespan_and_no_finite_delay() -> None:
    values = gangs.judged(_deadlock())
    assert "makespan" not in values
    assert "delay_p99_32" not in values
    assert "delay_mean" not in values
    assert values["delay_p99_8"] == 1
    assert (values["held"], values["held_for_ever"]) == (32, 24)


def _result(column: str, values: dict[str, float], seed: int = 1) -> Result:
    run = Run("gangs", "trace3_pr", column, seed, {"trace": "trace3_pr", "count": None})
    return Result(run, values, "0", {}, 1.0, run.command)


def test_the_page_says_who_deadlocks_and_how_far_the_limit_is() -> None:
    found = gangs.figures(
        [_result("ours", gangs.judged(_timeline())), _result("kube-default", gangs.judged(_deadlock()))]
    )
    assert "| `kube-default` | 66.7 |" in gangs.section(found)
    text = gangs.section([replace(one, case=gangs.DRAWN) for one in found])
    assert "| `kube-default` | 66.7 |" in text and re.search(r"\| `kube-default` .* 24 \|", text)
    assert re.search(r"\| `ours` .* 0.0072 \|\n", text) and re.search(r"\| \*limit\* .* 0.0059 \|\n", text)


@pytest.fixture(autouse=True)
def beside(monkeypatch: pytest.MonkeyPatch) -> list[Figure]:
    """Published and simulated figures of whole traces, for a trace of two jobs."""
    jobs = [Task("j0", 64, 0.0, 3e6), Task("j1", 64, 0.0, 1e6)]
    found = published.figures("trace3_pr", jobs, 8, 4.0)
    monkeypatch.setattr(gangs, "_published", lambda: found)
    return found


def test_whole_traces_stand_beside_what_others_published() -> None:
    [one] = [
        one
        for one in gangs.figures([_result("ours", gangs.judged(_timeline()))])
        if one.id.endswith("est.policy_makespan")
    ]
    assert one.value == 4.0
    text = gangs.section(gangs.figures([_result("ours", gangs.judged(_timeline()))]))
    assert "| simulated, by submission | 3.50 | 4.00 |" in text
    assert "| simulated, shortest | 2.50 | 4.00 |" in text
    assert "| SRSF | 0.80 | 6.91 |" in text
    assert "| *limit* | – | 4.00 |" in text


def test_the_reduced_plan_has_nothing_beside_it() -> None:
    [first, *_] = gangs.plan(full=False)
    result = replace(_result("ours", gangs.judged(_timeline())), run=first)
    assert published.section(gangs.figures([result])) == ""


def test_classes_go_by_duration() -> None:
    jobs = [Task(f"j{place}", 8, 0.0, duration) for place, duration in enumerate((9.0, 1.0, 5.0))]
    gangs.classify(jobs)
    assert [task.priority for task in jobs] == ["training-low", "training-high", "training-normal"]


def test_no_mean_over_the_seeds_that_had_luck(tmp_path: Path) -> None:
    both = [_result("kube-default", gangs.judged(_timeline())), _result("kube-default", gangs.judged(_deadlock()), 2)]
    assert "makespan" not in {figure.metric for figure in gangs.figures(both)}
    assert "| `kube-default` | 83.3 (66.7–100) |" in gangs.section(gangs.figures(both))
    of_part = [replace(one, case=gangs.DRAWN) for one in gangs.figures(both)]
    gangs.draw(of_part, tmp_path)
    assert [file.name for file in tmp_path.iterdir()] == [gangs.PLOT]
    assert f"(benchmarks/{gangs.PLOT})" in gangs.section(of_part)


def test_the_reduced_plan_is_part_of_the_whole_one() -> None:
    whole = gangs.plan(full=True)
    assert {run.id for run in gangs.plan(full=False)} <= {run.id for run in whole}
    assert len({run.id for run in whole}) == len(whole)


def test_the_fullest_node_with_room_is_taken() -> None:
    assert offline.fullest([8, 3, 5], 2, 8) == [(1, 2)]
    assert offline.fullest([8, 3, 8], 16, 8) == [(0, 8), (2, 8)]
    assert offline.fullest([8, 3, 5], 16, 8) == []
