"""What Python reads from values is what the chart renders from them."""

from __future__ import annotations

from pathlib import Path

import yaml

from trainyard import contract
from trainyard.paths import ROOT
from trainyard_dev.chart import package


def test_values_and_config_map_say_the_same(chart: Path, tmp_path: Path) -> None:
    values = tmp_path / "values.yaml"
    given = yaml.safe_load((ROOT / "tests" / "policies" / "teams.yaml").read_text())
    given["policies"] |= {"allowedImages": ["example.org/ours/"], "operators": ["someone"]}
    values.write_text(yaml.safe_dump(given))
    rendered = tmp_path / "rendered.yaml"
    rendered.write_text(yaml.safe_dump_all(package.render("kind", chart, values=[values])))
    mine, published = contract.load(values), contract.load(rendered)
    assert mine.parameters == published.parameters
    assert mine.modes == published.modes
    assert (mine.teams, mine.queues, mine.images) == (published.teams, published.queues, published.images)
