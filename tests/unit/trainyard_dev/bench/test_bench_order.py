"""The order bench without a scheduler: jobs drawn and submitted, counts and report."""

from types import SimpleNamespace
from typing import Any

import pytest

from trainyard_dev.bench import order
from trainyard_dev.bench.overtaking import JobRun
from trainyard_dev.bench.results import Result, Run
from trainyard_dev.bench.simulator import Task
from trainyard_dev.bench.traces import Job

NODES = {"n0": 8}
JOBS = [
    JobRun(0, "j0", 4, "q", 0, 0.0, 0.0, 3600.0, {"n0": 4}),
    JobRun(1, "j1", 8, "q", 0, 0.0, 7200.0, 9000.0, {"n0": 8}),
    JobRun(2, "j2", 4, "q", 0, 0.0, 0.0, 7200.0, {"n0": 4}),
]


@pytest.fixture(autouse=True)
def trace(monkeypatch: pytest.MonkeyPatch) -> None:
    jobs = [Job(f"j{index:05d}", 8, float(index // 2), 60.0 + index) for index in range(200)]
    monkeypatch.setattr(order, "philly", lambda name, count=None: jobs[:count])


def result(case: str, column: str, seed: int, values: dict[str, float] | None = None) -> Result:
    made = order.judged(JOBS, NODES)
    found = made | {"idle": 5.0, "makespan": 1.0, "makespan_bound": 0.5} | (values or {})
    return Result(Run("order", case, column, seed), found, "d", {}, 1.0, "c")


RESULTS = [
    *(result("burst", "ours", seed) for seed in (1, 2)),
    result("burst", "ours-strict", 1, {"violations": 0.0, "idle": 9.0}),
    result("burst+gate", "ours", 1, {"violations": 0.0}),
    result("names", "ours-strict", 1),
]


def test_what_is_counted() -> None:
    values = order.judged(JOBS, NODES)
    assert values["violations"] == values["harmful"] == values["delayed"] == 1
    assert values["delay_lost"] == 1.0  # hours: it would have fitted at 3600 s
    assert values["delay_max"] == 2.0


def test_a_case_is_the_same_for_the_same_seed() -> None:
    for settings in order.CASES.values():
        assert order.dealt(settings, 1) == order.dealt(settings, 1)
        assert order.dealt(settings, 1) != order.dealt(settings, 2)


def test_names_rise_with_submission_unless_the_case_is_about_names() -> None:
    for case, settings in order.CASES.items():
        names = [task.name for task in order.dealt(settings, 1)]
        assert (names == sorted(names)) == (case not in (order.NAMES, order.RANKED))


def test_classes_and_teams_are_dealt() -> None:
    assert {task.priority for task in order.dealt(order.CASES["classes"], 1)} == set(order.CLASSES)
    assert {task.queue for task in order.dealt(order.CASES["teams"], 1)} == {"team-0", "team-1"}


def replay(held: list[Task], waiting: list[Task]) -> Any:
    return SimpleNamespace(held=held, waiting={task.name: task for task in waiting})


def test_the_gate_lets_one_in_and_the_next_when_it_has_started() -> None:
    first, second = (Task(name, 1, 0.0, 1.0) for name in ("b", "a"))
    admit = order.gate({"b": 0, "a": 1})
    assert list(admit(replay([second, first], []))) == [first]
    assert list(admit(replay([second], [first]))) == []
    assert list(admit(replay([second], []))) == [second]


def test_without_a_gate_all_go_in_the_order_in_which_they_came() -> None:
    first, second = (Task(name, 1, 0.0, 1.0) for name in ("b", "a"))
    assert list(order.in_turn({"b": 0, "a": 1})(replay([second, first], []))) == [first, second]


def test_the_section_is_made_from_figures_alone_and_sets_the_gate_beside_the_others() -> None:
    text = order.section(order.figures(RESULTS))
    assert "\n- `burst`: " in text
    assert "| `ours+gate` |" in text
    assert "`burst+gate`" not in text
    assert "| `ours-strict` | 0 |" in text
    assert "| `ours-strict` | 9 |" in text


def test_the_plan_has_each_run_once_and_the_reduced_one_is_part_of_it() -> None:
    full, part = ([run.id for run in order.plan(size)] for size in (True, False))
    assert len(set(full)) == len(full)
    assert set(part) <= set(full)
