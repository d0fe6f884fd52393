"""Python reads the same contract from values as the chart renders."""

from __future__ import annotations

from pathlib import Path

import yaml

from rendering import Rendering
from trainyard import contract
from trainyard.paths import ROOT


def test_values_and_config_map_say_the_same(render: Rendering, tmp_path: Path) -> None:
    values, rendered = tmp_path / "values.yaml", tmp_path / "rendered.yaml"
    given = yaml.safe_load((ROOT / "tests" / "policies" / "teams.yaml").read_text())
    given["policies"] |= {"allowedImages": ["example.org/ours/"], "operators": ["someone"]}
    values.write_text(yaml.safe_dump(given))
    rendered.write_text(yaml.safe_dump_all(obj for obj in render(values) if obj["kind"] == "ConfigMap"))
    mine, published = contract.load(values), contract.load(rendered)
    assert mine.parameters == published.parameters
    assert mine.modes == published.modes
    assert (mine.teams, mine.queues, mine.images) == (published.teams, published.queues, published.images)
