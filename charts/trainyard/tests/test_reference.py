"""docs/values.md: every value is listed, with its meaning; `trainyard verify` reports it when it is out of date."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner

from trainyard_dev.chart import parts, reference
from trainyard_dev.cli import trainyard
from trainyard_dev.sync import pages
from trainyard_dev.sync.tree import Tree


@pytest.fixture(scope="module")
def page() -> str:
    return reference.render()


def test_every_key_of_ours_says_what_it_is_for() -> None:
    assert reference.undescribed(reference.sources()[0]) == []


def test_a_key_without_a_description_is_found() -> None:
    schema = {
        "properties": {
            "a": {"description": "A.", "items": {"properties": {"b": {"type": "string"}, "c": {"description": "C."}}}},
            "volcano": {"description": "V.", "properties": {"custom": {}}},
        }
    }
    assert reference.undescribed(schema) == ["a[].b"]


def test_every_default_has_its_row(page: str) -> None:
    """Each key of values.yaml, also of our subcharts, down to where the keys are the user's or upstream's own."""
    _, defaults = reference.sources()
    anchors = set(re.findall(r'<a id="([^"]+)">', page))
    listed = set(re.findall(r"`([A-Za-z_.-]+)`", page))

    def missing(values: dict[str, object], path: str) -> list[str]:
        found = []
        for key, value in values.items():
            inner = f"{path}.{key}" if path else key
            if inner in anchors:
                rows = any(anchor.startswith(f"{inner}.") for anchor in anchors)
                found += missing(value, inner) if isinstance(value, dict) and rows else []
            elif inner.partition(".")[2] not in listed:
                found.append(inner)
        return found

    assert missing(defaults, "") == []
    assert len(anchors) > 150


def test_a_row_says_type_default_meaning_and_limits(page: str) -> None:
    rows = {match[1]: match[0] for match in re.finditer(r'^\| <a id="([^"]+)">.*$', page, re.M)}
    assert (
        "| integer | `15` | Poll interval for each node, in seconds. Allowed: 1 to 3600. |"
        in rows["nodePrep.periodSeconds"]
    )
    assert "| `gpu` or `cpu` | *required* |" in rows["global.contract.nodePools[].kind"]
    assert "| map of quantity |" in rows["global.contract.queues[].capability"]
    assert '| `inCluster` or `external` | `"inCluster"` |' in rows["nfs.mode"]
    assert all(row.count(" | ") == 3 for row in rows.values()), "a bar inside a cell ends it"


def test_links_lead_to_anchors(page: str) -> None:
    anchors = re.findall(r'<a id="([^"]+)">', page)
    assert len(anchors) == len(set(anchors))
    assert set(re.findall(r"\]\(#([^)]+)\)", page)) <= set(anchors)


def test_the_same_every_time(page: str) -> None:
    assert reference.render() == page


def test_defaults_of_a_subchart_give_way_to_the_umbrella() -> None:
    assert reference._merged({"a": {"b": 1, "c": 2}, "d": [1]}, {"a": {"b": 3}, "d": []}) == {
        "a": {"b": 3, "c": 2},
        "d": [],
    }


def test_command_writes_the_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, page: str) -> None:
    monkeypatch.setattr(reference, "PAGE", tmp_path / "values.md")
    for word in ("written", "up to date"):
        done = CliRunner().invoke(trainyard, ["chart", "values-reference"])
        assert word in done.output
    assert (tmp_path / "values.md").read_text() == page


def test_verify_finds_an_old_page(tmp_path: Path, page: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pages, "MADE", {"docs/values.md": pages.MADE["docs/values.md"]})
    (tmp_path / "charts/trainyard").mkdir(parents=True)
    (tmp_path / "charts/trainyard/values.schema.yaml").write_text("{}")
    (tmp_path / "docs").mkdir()
    for text, changed in ((page, []), (page.replace("Poll interval", "Poll period"), ["docs/values.md"])):
        (tmp_path / "docs/values.md").write_text(text)
        pages.write(tree := Tree(tmp_path, dry=True))
        assert list(tree.changed) == changed


def test_umbrella_and_page_speak_of_the_same_parts(page: str) -> None:
    meta = yaml.safe_load((parts.UMBRELLA / "Chart.yaml").read_text())
    for dependency in meta["dependencies"]:
        assert f"## `{dependency['name']}`" in page
