"""The commit hook that `make` installs: a long subject is refused, and a user's own hooks are never replaced."""

import shutil
import subprocess
from pathlib import Path

import pytest

from trainyard.paths import ROOT

INSTALL = ".githooks/install"


def git(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    who = ("-c", "user.name=a", "-c", "user.email=a@b", "-c", "commit.gpgsign=false")
    return subprocess.run(["git", *who, *words], cwd=folder, capture_output=True, text=True, check=False)


@pytest.fixture
def clone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A checkout with the hooks of this one, which no configuration of the person's reaches."""
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", "/dev/null")
    monkeypatch.setenv("GIT_CONFIG_SYSTEM", "/dev/null")
    folder = tmp_path / "clone"
    shutil.copytree(ROOT / ".githooks", folder / ".githooks")
    git(folder, "init", "-q", "-b", "main")
    return folder


def install(folder: Path) -> None:
    assert subprocess.run([folder / INSTALL], check=False, capture_output=True, text=True).stderr == ""


def commit(folder: Path, message: str) -> subprocess.CompletedProcess[str]:
    return git(folder, "commit", "--allow-empty", "-m", message)


def test_a_long_subject_is_refused(clone: Path) -> None:
    install(clone)
    done = commit(clone, "x" * 73)
    assert done.returncode == 1
    assert done.stderr == (
        "commit-msg: the subject has 73 characters, at most 72 fit. Shorten it, and say why in the body.\n"
    )
    assert git(clone, "log").returncode != 0, "nothing was committed"
    for message in ("é" * 72, "short\n\n" + "body " * 40, "fixup! " + "x" * 72):
        assert commit(clone, message).returncode == 0, message


def test_it_holds_in_a_further_work_tree(clone: Path) -> None:
    install(clone)
    git(clone, "add", "-A")
    commit(clone, "begin")
    assert git(clone, "worktree", "add", "-q", "../other").returncode == 0
    install(clone.parent / "other")
    assert "73 characters" in commit(clone.parent / "other", "x" * 73).stderr


def test_hooks_that_somebody_has_stay(clone: Path) -> None:
    git(clone, "config", "core.hooksPath", "mine")
    install(clone)
    assert git(clone, "config", "core.hooksPath").stdout == "mine\n"
    git(clone, "config", "--unset", "core.hooksPath")
    own = clone / ".git/hooks/pre-commit"
    own.parent.mkdir(exist_ok=True)
    own.write_text("#!/bin/sh\n")
    install(clone)
    assert git(clone, "config", "core.hooksPath").stdout == ""


def test_a_tree_without_git_is_left_alone(clone: Path) -> None:
    """A package that was unpacked inside somebody's checkout must not change that one."""
    inner = clone / "inner"
    shutil.copytree(clone / ".githooks", inner / ".githooks")
    install(inner)
    assert git(clone, "config", "core.hooksPath").stdout == ""


def test_make_installs_it() -> None:
    argv = ["make", "--no-print-directory", "-n", "verify"]
    said = subprocess.run(argv, cwd=ROOT, check=True, capture_output=True, text=True).stdout
    assert said.splitlines()[0] == INSTALL
