"""What has to be checked again, by the commit of the last good run, where history has it."""

import subprocess
from pathlib import Path

import pytest

from trainyard.paths import ROOT
from trainyard_dev import campaigns, changes
from trainyard_dev.e2e import selection


@pytest.fixture
def tree(tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A repository of two commits: the second changes b."""
    root = tmp_path / "tree"
    root.mkdir()
    monkeypatch.setattr(changes, "ROOT", root)
    git(root, "init", "-q")
    for name in ("a", "b"):
        (root / name).write_text(name)
        git(root, "add", "-A")
        git(root, "commit", "-q", "-m", name)
    return root


def git(root: Path, *words: str) -> None:
    who = ["-c", "user.name=x", "-c", "user.email=x@example.org"]
    subprocess.run(["git", "-C", str(root), *who, *words], check=True, capture_output=True)


def test_without_a_good_run_the_last_commit_counts(tree: Path) -> None:
    assert changes.paths() == ["b"]


def test_after_a_good_run_what_came_since_counts(tree: Path) -> None:
    changes.remember()
    assert changes.paths() == []
    (tree / "a").write_text("other")
    assert changes.paths() == ["a"]


def test_a_good_commit_that_history_lacks_is_as_none(tree: Path, cache: Path) -> None:
    (changes.cache_dir() / "passed-commit").write_text("0" * 40)
    assert changes.paths() == ["b"]


def test_outside_of_a_repository_nothing_changed(tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(changes, "ROOT", tmp_path)
    assert changes.paths() == []
    changes.remember()
    assert not (changes.cache_dir() / "passed-commit").exists()


def test_a_campaign_is_due_until_it_passed_whole_and_again_when_its_inputs_change(
    tree: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(campaigns, "CAMPAIGNS", {"attacks": campaigns.Campaign(("a",), ())})
    never = ["due: make attacks (no successful run recorded here)"]
    assert campaigns.ended("attacks", good=False) == 1 and list(campaigns.due()) == never
    assert campaigns.ended("attacks", good=True, whole=False) == 0 and list(campaigns.due()) == never
    assert campaigns.ended("attacks", good=True) == 0 and list(campaigns.due()) == []
    (tree / "b").write_text("other")
    assert list(campaigns.due()) == []
    (tree / "a").write_text("other")
    assert list(campaigns.due()) == ["due: make attacks (a changed)"]
    changes.remember()
    assert list(campaigns.due()) == ["due: make attacks (a changed)"], "a run of checks is no run of a campaign"


@pytest.mark.parametrize("name", campaigns.CAMPAIGNS)
def test_a_campaign_has_a_target_inputs_and_a_sample(name: str) -> None:
    campaign = campaigns.CAMPAIGNS[name]
    assert f"\n{name}: ##" in (ROOT / "Makefile").read_text()
    assert all(any(ROOT.glob(path)) for path in campaign.inputs)
    assert selection.chosen(campaign.sample, full=False)
    section = (ROOT / "docs/testing.md").read_text().partition("## Campaigns\n")[2].partition("\n## ")[0]
    assert f"| `make {name}` |" in section
