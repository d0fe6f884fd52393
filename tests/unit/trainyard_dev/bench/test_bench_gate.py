"""The short gate: figures within their ranges, and the record of a configuration that passed."""

from pathlib import Path

import pytest

from trainyard.errors import TrainyardError
from trainyard_dev.bench import configurations, gate, registry
from trainyard_dev.bench.results import Result, Run

WANTED = [
    gate.Range("packing", "default@0.1", "ours", 1, "allocated", least=97.0),
    gate.Range("packing", "default@0.1", "ours", 1, "held", most=0),
]


def measured(**values: float) -> list[Result]:
    return [Result(Run("packing", "default@0.1", "ours", 1, {}), values, "d", {}, 1.0, "")]


@pytest.mark.parametrize(
    ("values", "failures"),
    [
        ({"allocated": 97.0, "held": 0}, []),
        ({"allocated": 96.9, "held": 0}, ["packing.default@0.1.ours.s1: allocated is 96.9, below 97"]),
        ({"allocated": 99, "held": 1}, ["packing.default@0.1.ours.s1: held is 1, above 0"]),
        ({"allocated": 99}, ["packing.default@0.1.ours.s1 gave no held"]),
    ],
)
def test_figures_outside_of_their_range_are_reported(values: dict[str, float], failures: list[str]) -> None:
    assert gate.judge(WANTED, measured(**values)) == failures


def test_a_run_that_was_not_measured_does_not_pass() -> None:
    assert len(gate.judge(WANTED, [])) == 2


def test_what_passed_is_remembered_and_comments_stay(tmp_path: Path) -> None:
    file = tmp_path / "gate.yaml"
    file.write_text("# why\nranges:\n  - {bench: b, case: c, column: ours, seed: 1, metric: m, least: 1}\n")
    wanted = gate.ranges(file)
    for digest in ("one", "two"):
        gate.remember(wanted, lambda name, digest=digest: f"{name}-{digest}", file)
        assert gate.passed(file) == {"ours": f"ours-{digest}"}
    assert file.read_text().startswith("# why\n") and gate.ranges(file) == wanted


def test_a_file_without_ranges(tmp_path: Path) -> None:
    with pytest.raises(TrainyardError, match=r"no figure has a range\. add one under ranges"):
        gate.ranges(tmp_path / "gate.yaml")


def test_the_gate_s_runs_are_of_a_plan_and_have_passed() -> None:
    wanted = gate.ranges()
    planned = {run.id for name in registry.BENCHES for full in (True, False) for run in registry.plan(name, full)}
    assert {one.run for one in wanted} <= planned
    assert gate.passed() == {name: configurations.column(name).digest for name in {one.column for one in wanted}}
