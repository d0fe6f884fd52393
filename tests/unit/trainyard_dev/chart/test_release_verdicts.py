"""Verdicts: ranges of versions, unassessed upgrades are blocked, and every upgrade that users can make is assessed."""

import re
from pathlib import Path

import pytest

from trainyard.components import registry
from trainyard.errors import TrainyardError
from trainyard.paths import ROOT
from trainyard_dev.chart import previous, verdicts
from trainyard_dev.e2e.catalog import all_ids
from trainyard_dev.versions import installs, load

HERE = installs(ROOT, load().raw)
ENTRY = """
about: Volcano.
upgrades:
  - {from: "1.0", to: ">=1.1 <2.0", verdict: safe, why: tried}
  - {from: "<1.0", to: ">=1.0", verdict: steps, why: renamed, steps: [do this], preconditions: [that]}
"""


def entry(folder: Path, name: str, text: str) -> None:
    (folder / name).mkdir()
    (folder / name / registry.FILE).write_text(text)


@pytest.mark.parametrize(
    ("version", "wanted", "due"),
    [
        ("1.14.1", "1.14.1", True),
        ("v1.14.1", "=1.14.1", True),
        ("1.14", "1.14.0", True),
        ("1.9.3", ">=1.10", False),
        ("1.14.1", ">=1.14 <1.15", True),
        ("1.15.0", ">=1.14 <1.15", False),
        ("0.0.0-20260212201848-7aac2a", "0.0.0-20260212201848", True),
        ("0.0.0-20250101000000-7aac2a", ">=0.0.0-20260212201848", False),
    ],
)
def test_ranges(version: str, wanted: str, due: bool) -> None:
    assert verdicts.within(version, wanted) is due


def test_a_range_that_can_t_be_read_is_named() -> None:
    with pytest.raises(TrainyardError, match=r"'~1\.2' is not a version range"):
        verdicts.within("1.2", "~1.2")


def test_what_nobody_assessed_is_blocked(tmp_path: Path) -> None:
    entry(tmp_path, "volcano", ENTRY)
    known = verdicts.load(tmp_path)
    assert verdicts.judge("volcano", "1.0", "1.5", known).verdict == "safe"
    assert verdicts.judge("volcano", "0.9", "1.5", known).steps == ("do this",)
    for component, before, after in (("volcano", "1.0", "2.0"), ("volcano", "1.5", "1.0"), ("minio", "1", "1")):
        judged = verdicts.judge(component, before, after, known)
        assert judged.verdict == "blocked"
        assert f"charts/{component}/component.yaml" in judged.why


@pytest.mark.parametrize(
    ("wrong", "error"),
    [
        ("verdict: fine", "verdict is 'fine', not one of safe, steps, blocked"),
        ("verdict: safe, steps: [x]", "`steps` must be set if, and only if, the verdict is `steps`"),
        ("verdict: steps", "`steps` must be set if, and only if, the verdict is `steps`"),
        (
            "verdict: steps, steps: [{No restore runs: wait}]",
            "{'No restore runs': 'wait'} is not a string: put it in quotes",
        ),
    ],
)
def test_a_file_that_contradicts_itself_is_refused(tmp_path: Path, wrong: str, error: str) -> None:
    entry(tmp_path, "a", f"about: a\nupgrades: [{{from: '1', to: '2', why: x, {wrong}}}]\n")
    with pytest.raises(TrainyardError, match=re.escape(error)):
        verdicts.load(tmp_path)


def released() -> list[str]:
    """Every version that CHANGELOG.md says was released, the newest first."""
    found = re.findall(r"^## \[([0-9.]+)\] - (\S+)", (ROOT / "CHANGELOG.md").read_text(), re.M)
    return [version for version, day in found if day != "unreleased"]


def test_this_release_is_noted_as_it_is() -> None:
    assert verdicts.releases()[HERE["trainyard"]] == HERE


@pytest.mark.parametrize("release", [*released(), HERE["trainyard"]])
def test_every_component_is_assessed_from_every_release(release: str) -> None:
    judged = {one.component: one for one in verdicts.assess(release)}
    assert set(judged) == set(HERE)
    assert [f"{name}: {one.why}" for name, one in judged.items() if one.verdict == "blocked"] == []


def test_an_unknown_release_is_blocked() -> None:
    (one,) = verdicts.assess("0.0.1")
    assert one.verdict == "blocked"


def test_the_previous_version_is_the_newest_that_was_released() -> None:
    newest = next(version for version in released() if version != HERE["trainyard"])
    assert previous.version() == newest
    assert re.fullmatch("[0-9a-f]{40}", previous.commit())


def test_images_of_the_previous_version_stand_on_its_own_suite(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "versions.yaml").write_text("pull: {base-image: 'docker.io/library/debian:buster-20240612-slim'}\n")
    monkeypatch.setattr(previous, "tree", lambda: tmp_path)
    assert previous.suite() == "buster"


def test_what_is_said_to_be_tested_are_checks_that_exist() -> None:
    ids = set(all_ids())
    for component, entries in verdicts.load().items():
        for entry in entries:
            assert set(entry.tested) <= ids, component
            assert entry.tested or entry.verdict == "blocked" or component == "csi-driver-nfs", component


def test_a_clone_without_history_says_so(tmp_path: Path) -> None:
    assert "which this clone lacks" in previous.missing(tmp_path)
