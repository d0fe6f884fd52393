"""Dashboards are what their specs say, Grafana can take them, and Prometheus can read their queries."""

import json
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from trainyard_dev.monitoring import dashboards, panels

NAMES = ("cluster", "job", "platform", "queue", "storage", "team")
# Units as Grafana calls them.
UNITS = {"short", "percent", "percentunit", "s", "ms", "bytes", "decmbytes", "Bps", "reqps", "ops", "celsius", "watt"}


def read(name: str) -> dict[str, Any]:
    return dashboards.made()[name]


def shown(name: str) -> list[dict[str, Any]]:
    """Its panels without the titles of rows."""
    return [panel for panel in read(name)["panels"] if panel["type"] != "row"]


def test_these_are_the_dashboards() -> None:
    assert dashboards.names() == list(NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_grafana_can_take_it(name: str) -> None:
    board = read(name)
    assert board["schemaVersion"] >= 39 and board["uid"] == f"trainyard-{name}" and len(board["uid"]) <= 40
    first = board["templating"]["list"][0]
    assert (first["name"], first["type"], first["query"]) == ("datasource", "datasource", "prometheus")
    ids = [panel["id"] for panel in board["panels"]]
    assert len(ids) == len(set(ids))
    for panel in shown(name):
        assert panel["datasource"]["uid"] == "${datasource}"
        assert panel["description"].endswith("."), panel["title"]
        assert panel["fieldConfig"]["defaults"]["unit"] in UNITS, panel["title"]
        assert panel["targets"] and all(target["expr"] for target in panel["targets"]), panel["title"]


@pytest.mark.parametrize("name", NAMES)
def test_titles_are_said_once_and_nothing_overlaps(name: str) -> None:
    titles = [panel["title"] for panel in shown(name)]
    assert len(titles) == len(set(titles))
    taken: set[tuple[int, int]] = set()
    for panel in read(name)["panels"]:
        place = panel["gridPos"]
        cells = {
            (x, y)
            for x in range(place["x"], place["x"] + place["w"])
            for y in range(place["y"], place["y"] + place["h"])
        }
        assert not cells & taken and place["x"] + place["w"] <= dashboards.COLUMNS, panel["title"]
        taken |= cells


@pytest.mark.parametrize("name", NAMES)
def test_variables_are_declared_and_used(name: str) -> None:
    board = read(name)
    declared = {one["name"] for one in board["templating"]["list"]}
    used = set(re.findall(r"\$\{?(\w+)", json.dumps([panel["targets"] for panel in shown(name)]))) - set(panels.TIME)
    assert used == declared


def test_every_query_is_listed_with_its_variables_replaced() -> None:
    found = panels.queries({"team": "vision"})
    assert {query.dashboard for query in found} == set(NAMES) and len(found) > 100
    assert not [query for query in found if "$" in query.expr]
    assert any('team=~"vision"' in query.expr for query in found)
    assert len({str(query) for query in found}) == len(found)
    assert (
        panels.filled('x{a=~"$team",b=~"${job:regex}"}[$__rate_interval]', {"job": "bert"})
        == 'x{a=~".*",b=~"bert"}[2m]'
    )


def test_prometheus_can_read_every_query(promtool: Path, tmp_path: Path) -> None:
    rules = [{"record": f"panel:{place}", "expr": query.expr} for place, query in enumerate(panels.queries())]
    file = tmp_path / "rules.yaml"
    file.write_text(yaml.safe_dump({"groups": [{"name": "panels", "rules": rules}]}))
    done = subprocess.run([promtool, "check", "rules", file], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
