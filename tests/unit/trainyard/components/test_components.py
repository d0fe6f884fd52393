"""The registry of components: entries are parsed strictly, and agree with sources and derived files."""

from pathlib import Path

import pytest
import yaml

from trainyard import components
from trainyard.chart.release import removal
from trainyard.components import registry
from trainyard.errors import TrainyardError
from trainyard.kinds import registry as kinds
from trainyard.paths import CHART, ROOT
from trainyard_dev.e2e.catalog import all_ids
from trainyard_dev.versions import load

EVERY = pytest.mark.parametrize("entry", components.all_components(), ids=lambda one: one.name)


def test_the_umbrella_depends_on_every_entry_and_no_other() -> None:
    listed = yaml.safe_load((CHART / "Chart.yaml").read_text())["dependencies"]
    assert {one["name"] for one in listed} == {one.name for one in components.dependencies()}
    assert {one["name"]: one["condition"] for one in listed} == {
        one.name: f"{one.name}.enabled" for one in components.dependencies()
    }


@EVERY
def test_what_it_names_is_there(entry: registry.Component) -> None:
    raw = load().raw
    assert set(entry.images) <= set(raw["images"])
    assert entry.chart.get("module", "volcano") in raw["tools"]
    assert entry.is_ours == (ROOT / "charts" / entry.name / "templates").is_dir()
    assert set(entry.placement.values()) <= {"gpu", "every"}
    assert {check for verdict in entry.upgrades for check in verdict.get("tested", ())} <= set(all_ids())


def test_no_file_in_the_umbrella_s_templates_is_that_of_two() -> None:
    files = [*(CHART / "templates").iterdir(), *CHART.parent.glob("*/umbrella/*")]
    assert len({file.name for file in files}) == len(files)


def test_every_image_of_the_installation_belongs_to_an_entry() -> None:
    held = {name for one in components.all_components() for name in one.images}
    raw = load().raw["images"]
    installed = {name for name, spec in raw.items() if spec.get("stage", "install") == "install"}
    assert installed <= held


def test_endpoints_have_names_of_their_own_and_what_is_left_out() -> None:
    found = {one["name"]: one for one in components.endpoints()}
    assert len(found) == sum(len(one.metrics) for one in components.all_components())
    assert found["volcano-scheduler"] == {
        "component": "volcano", "name": "volcano-scheduler", "pods": {"app": "volcano-scheduler"}, "port": 8080,
        "path": "/metrics", "scheme": "http", "honor": False, "labels": {},
    }  # fmt: skip


def test_an_operator_s_crds_are_those_of_its_kinds() -> None:
    crds = components.find(kinds.OPERATOR).crds
    assert crds and set(crds.names) == {kind.resource for kind in kinds.of_part(kinds.OPERATOR)}


def test_a_purge_ends_workflows_before_the_jobs_that_they_would_submit_again() -> None:
    first = removal.JOBS.index("workflows.argoproj.io")
    assert all(removal.JOBS.index(kind.resource) > first for kind in kinds.with_gang())


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("optional: true", "an entry says in `about` what the component is"),
        ("about: x\nimage: [a]", "unknown key image"),
        ("about: x\nremoval: {end: [a/v1/b]}", r"unknown key removal\.end"),
        ("about: x\nmetrics: [{name: x, port: 1}]", "an endpoint of metrics lacks pods"),
        ("about: x\nmetrics: [{name: x, pods: {a: b}, port: 1, url: /}]", "has name, pods and port, and not url"),
    ],
)
def test_an_entry_that_nothing_understands_is_refused_by_name(tmp_path: Path, text: str, said: str) -> None:
    (tmp_path / "x").mkdir()
    (tmp_path / "x" / registry.FILE).write_text(text)
    with pytest.raises(TrainyardError, match=said) as caught:
        registry.load(tmp_path)
    assert caught.value.where == "charts/x/component.yaml"
