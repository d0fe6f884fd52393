"""Rules and dashboards ask for series that there are: by who gives them, and in the pinned source of each."""

import re
from pathlib import Path

import pytest
import yaml

from trainyard.errors import TrainyardError
from trainyard.paths import ROOT
from trainyard_dev import tools
from trainyard_dev.monitoring import known, panels, rules


def asked() -> list[tuple[str, str]]:
    """Every expression, with where it stands."""
    of_rules = [(str(rule.get("alert") or rule["record"]), str(rule["expr"])) for rule in rules.all_rules()]
    return [*of_rules, *((str(query), query.expr) for query in panels.queries())]


@pytest.mark.parametrize(
    ("expr", "names"),
    [
        ('max by (node) (kube_node{a="b"}) == 0', {"kube_node"}),
        ("a:b / on (x, y) group_left (z) (c_total[5m] > 0) or vector(0)", {"a:b", "c_total"}),
        ('sum(rate(x_bucket{le=~"kube_up|1"}[1h])) unless up offset 5m', {"x_bucket", "up"}),
        ("time() - 1.5e9 > -y", {"y"}),
    ],
)
def test_names_are_read_out_of_expressions(expr: str, names: set[str]) -> None:
    assert known.names(expr) == names


def test_every_series_that_is_asked_for_is_given_by_somebody() -> None:
    assert {where: missing for where, expr in asked() if (missing := known.unknown(expr))} == {}


def test_what_is_written_down_is_asked_for() -> None:
    used = {known.plain(name) for _, expr in asked() for name in known.names(expr)}
    assert known.known() - rules.records() - used == set()


@pytest.mark.parametrize("giver", [one for one in known.givers() if one.files], ids=lambda one: one.by)
def test_names_stand_in_the_source(giver: known.MetricsSource) -> None:
    folder = _source(giver)
    texts = "\n".join(file.read_text() for file in folder.glob(giver.files))
    if not texts and not giver.module:
        pytest.skip(f"{giver.files} is not there")
    assert texts, f"{giver.files} of {giver.module} is empty"
    for name in giver.names:
        assert any(end in texts if end == name else f'"{end}"' in texts for end in giver.ends(name)), name


def _source(giver: known.MetricsSource) -> Path:
    """Where its files are: in a set's main module, in a module beside that one, or here."""
    if not giver.module:
        return ROOT
    try:
        if giver.tool:
            return tools.module_dir(giver.tool)
        beside = sorted(tools.module_dir("kubernetes").parents[1].glob(f"{giver.module}@*"))
    except (TrainyardError, KeyError) as error:
        pytest.skip(f"the module {giver.module} can't be had: {error}")
    if not beside:
        pytest.skip(f"the module {giver.module} is not in Go's cache")
    return beside[-1]


def test_the_exporter_gives_just_what_is_agreed() -> None:
    """Its own table has every name that we count on."""
    file = ROOT / "scripts" / "trainyard_agent" / "exporter" / "series.py"
    given = set(re.findall(r'^    "(trainyard_\w+)"', file.read_text(), re.M))
    assert set(yaml.safe_load(known.FILE.read_text())[0]["names"]) <= given
