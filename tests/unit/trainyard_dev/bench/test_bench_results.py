"""Runs, results and figures: names, files that can be read again, means and spreads over seeds."""

from pathlib import Path

import pytest

from trainyard.errors import TrainyardError, UsageError
from trainyard_dev.bench import results
from trainyard_dev.bench.results import Figure, Result, Run, summarise


def result(seed: int = 1, case: str = "a@0.25", column: str = "ours", **values: float) -> Result:
    run = Run("packing", case, column, seed, {"share": 0.25})
    return Result(run, values, "d1", {"etcd": "v3"}, 1.5, run.command)


def test_a_run_is_called_by_its_parts() -> None:
    run = result().run
    assert run.id == "packing.a@0.25.ours.s1"
    assert run.command == "bin/trainyard bench replay packing --case a@0.25 --column ours --seed 1"
    assert hash(run) == hash(Run("packing", "a@0.25", "ours", 1))


@pytest.mark.parametrize("case", ["", "a b", "a/b", "ä"])
def test_a_name_that_no_file_and_no_command_can_hold(case: str) -> None:
    with pytest.raises(UsageError, match="is invalid in the name of a run"):
        Run("packing", case, "ours", 1)


def test_a_result_is_read_as_it_was_written() -> None:
    wrote = result(allocation=97.25)
    assert Result.from_json(wrote.to_json()) == wrote


def test_a_value_that_is_no_number_is_refused() -> None:
    with pytest.raises(TrainyardError, match=r"packing\.a@0\.25\.ours\.s1: the result is not a plain number"):
        result(allocation=float("nan")).to_json()


def test_files_that_hold_no_result_are_left_out(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text(result().to_json())
    (tmp_path / "b.json").write_text(result().to_json()[:40])
    (tmp_path / "c.json").write_text("[]")
    (tmp_path / "d.json").write_text("{}")
    assert results.read(tmp_path) == [result()]


def test_mean_spread_and_command_over_seeds() -> None:
    found = [result(seed, used=value) for seed, value in ((3, 96.0), (1, 90.0), (2, 93.0))]
    command = "bin/trainyard bench replay packing --case a@0.25 --column ours --seed 1-3"
    assert summarise(found, "used", "%", 100) == [
        Figure("packing", "a@0.25", "ours", "used", 93.0, 90.0, 96.0, 100.0, "%", [1, 2, 3], command)
    ]


def test_a_bound_that_was_measured_too() -> None:
    found = [result(1, used=90.0, most=98.0), result(2, used=92.0, most=99.0)]
    assert summarise(found, "used", "%", "most")[0].bound == 98.5
    del found[0].values["most"]
    assert summarise(found, "used", "%", "most")[0].bound is None


def test_cases_and_configurations_keep_their_order_and_those_without_the_metric_are_left_out() -> None:
    found = [
        result(1, "b", "ours", used=1.0),
        result(1, "a", "ours", used=2.0),
        result(1, "b", "kube-default", other=3.0),
        result(2, "b", "ours", used=1.0),
    ]
    assert [(one.case, one.column, one.seeds) for one in summarise(found, "used", "%")] == [
        ("b", "ours", [1, 2]),
        ("a", "ours", [1]),
    ]


def test_seeds_in_commands_are_ranges() -> None:
    assert results.command("p", "c", "ours", [7, 1, 2, 3, 9]).endswith("--seed 1-3,7,9")
