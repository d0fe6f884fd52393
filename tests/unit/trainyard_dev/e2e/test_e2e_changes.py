"""What has to be checked again: by the commit of the last good run, where history has it."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from trainyard_dev.e2e import changes


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
