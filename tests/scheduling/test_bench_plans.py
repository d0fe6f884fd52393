"""What every bench plans to measure: configurations that exist, seeds that may be reported, settings that are clear."""

import json

import pytest

from trainyard_dev.bench import configurations, registry
from trainyard_dev.bench.cli import select

FACE = ("TITLE", "FRESH", "HEADINGS", "SHORT", "LESS", "plan", "measure", "figures", "section")
TUNED_ON = range(42, 46)  # the seeds on which settings were chosen


@pytest.mark.parametrize("name", registry.BENCHES)
def test_a_bench_has_its_whole_face(name: str) -> None:
    bench = registry.load(name)
    assert all(hasattr(bench, part) for part in FACE)
    assert isinstance(bench.FRESH, bool)
    assert bench.TITLE


@pytest.mark.parametrize("name", registry.BENCHES)
def test_a_plan_can_be_measured(name: str) -> None:
    """A case means the same in both plans, so that a figure's command finds what to measure by its names."""
    plans = [registry.load(name).plan(full) for full in (True, False)]
    assert all(plans)
    settings: dict[str, str] = {}
    for run in (*plans[0], *plans[1]):
        assert run.bench == name
        assert configurations.column(run.column).digest
        assert run.seed not in (0, *TUNED_ON)
        written = json.dumps(run.settings, sort_keys=True)
        assert settings.setdefault(run.id, written) == written, f"{run.id} means two things"
        # With the settings of its own configuration, not with those of another one of the same case.
        assert select(name, run.case, run.column, [run.seed]) == [run]
