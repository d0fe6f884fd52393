"""What every bench plans to measure: configurations that exist, seeds that may be reported, settings that are clear."""

from __future__ import annotations

import json

import pytest

from trainyard_dev.bench import configurations, registry
from trainyard_dev.bench.cli import select

FACE = ("TITLE", "FRESH", "HEADINGS", "SHORT", "LESS", "plan", "measure", "figures", "section")
TUNED_ON = range(42, 46)  # the seeds on which settings were chosen


@pytest.mark.parametrize("full", [False, True])
@pytest.mark.parametrize("name", registry.ORDER)
def test_a_plan_can_be_measured(name: str, full: bool) -> None:
    runs = registry.load(name).plan(full)
    assert runs
    settings: dict[str, str] = {}
    for run in runs:
        assert run.bench == name
        assert configurations.column(run.column).digest
        assert run.seed not in (0, *TUNED_ON)
        written = json.dumps(run.settings, sort_keys=True)
        assert settings.setdefault(run.id, written) == written, f"{run.id} means two things"


@pytest.mark.parametrize("name", registry.ORDER)
def test_a_case_means_the_same_for_every_configuration(name: str) -> None:
    """So that a figure's command finds what to measure by the names of case and configuration."""
    runs = [*registry.load(name).plan(True), *registry.load(name).plan(False)]
    of_case = {run.id: json.dumps(run.settings, sort_keys=True) for run in runs}
    again = {run.id: json.dumps(run.settings, sort_keys=True) for run in reversed(runs)}
    assert of_case == again


@pytest.mark.parametrize("name", registry.ORDER)
def test_a_figures_command_measures_what_was_planned(name: str) -> None:
    """With the settings of its own configuration, not with those of another one of the same case."""
    for run in (*registry.load(name).plan(True), *registry.load(name).plan(False)):
        assert select(name, run.case, run.column, [run.seed]) == [run]


@pytest.mark.parametrize("name", registry.ORDER)
def test_a_bench_has_its_whole_face(name: str) -> None:
    bench = registry.load(name)
    assert all(hasattr(bench, part) for part in FACE)
    assert isinstance(bench.FRESH, bool)
    assert bench.TITLE
