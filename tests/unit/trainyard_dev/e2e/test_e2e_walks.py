"""The README's commands: each is run as written or states why not, and a walk is one shell session."""

import os
from collections.abc import Iterable
from pathlib import Path

import pytest

from trainyard.errors import TrainyardError
from trainyard.paths import ROOT
from trainyard_dev.cluster import lifecycle
from trainyard_dev.e2e import walks
from trainyard_dev.e2e.catalog import ENTRIES
from trainyard_dev.e2e.checks import readme
from trainyard_dev.e2e.run import INSTALLED
from trainyard_dev.engine import Engine
from trainyard_dev.images.source import Source
from trainyard_dev.images.supply import Supply
from trainyard_dev.progress import Progress

PAGE = """\
<!-- walk: somebody -->
    first one \\
      --flag   # what it does

    second
Text.

<!-- not run: no machine has it -->
    third

<!-- walk: somebody -->
    fourth
"""


def test_commands_go_to_who_types_them() -> None:
    page = walks.read(PAGE)
    assert [(one.who, [walks.plain(command) for command in one.commands]) for one in page.walks] == [
        ("somebody", ["first one --flag", "second", "fourth"])
    ]
    assert page.left_out == [("no machine has it", ["third"])]
    with pytest.raises(TrainyardError, match="no walk is marked `<!-- walk: nobody -->`"):
        page.walk("nobody")


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("Text.\n\n    command\n", "line 3: these commands lack a mark"),
        ("<!-- walk: a -->\nText.\n", r"line 2: no commands follow <!-- walk: a -->"),
    ],
)
def test_a_page_that_leaves_it_open(text: str, says: str) -> None:
    with pytest.raises(TrainyardError, match=says):
        walks.read(text)


def test_a_walk_is_one_session(tmp_path: Path) -> None:
    walk = walks.Walk("me", ["export A=1; mkdir x", "cd x", "echo $A in $(basename $PWD)  # here", "echo late >&2"])
    assert list(walks.run(walk, tmp_path, os.environ, 20).values()) == ["", "", "1 in x\n", "late\n"]


@pytest.mark.parametrize(
    ("commands", "timeout", "says"),
    [
        (["true", "echo why; exit 3", "true"], 20, r"`echo why; exit 3` ended with 3: why"),
        (["false | cat", "echo on"], 20, r"`false \| cat` ended with 1"),
        (["echo begun; sleep 30"], 0.5, r"`echo begun; sleep 30` did not end within 0 s: begun"),
    ],
)
def test_the_command_that_fails_is_named(tmp_path: Path, commands: list[str], timeout: float, says: str) -> None:
    with pytest.raises(TrainyardError, match=says):
        walks.run(walks.Walk("me", commands), tmp_path, os.environ, timeout)


def test_every_command_of_the_readme_is_run_or_says_why_not() -> None:
    page = walks.read((ROOT / "README.md").read_text())
    assert [f"readme.{one.who.replace(' ', '-')}" for one in page.walks] == list(readme.TITLES)
    assert all(len(why.split()) > 2 for why, _ in page.left_out)
    ours = [walks.plain(command) for one in page.walks for command in one.commands]
    assert any(command.startswith("helm install ") for command in ours)
    assert "bin/trainyard data example" in ours
    assert "trainyard submit pipelines/mnist.py -n vision" in ours


def test_the_readmes_first_line_makes_the_cluster_of_the_walks(monkeypatch: pytest.MonkeyPatch) -> None:
    """`make cluster-up` is not run by the walks: the run's own cluster comes by the same steps, with images it has."""
    made: list[dict[str, set[str]]] = []
    walked = {name for one in ENTRIES if set(one.ids) & set(readme.TITLES) for name in one.images}

    class Made(Supply):
        def __init__(self, engine: Engine, source: Source, names: Iterable[str] | None = None) -> None:
            super().__init__(engine, source, names)
            self.waited: set[str] = set()

        def start(self) -> None:
            pass

        def wait(self, names: Iterable[str]) -> None:
            self.waited |= set(names)

    def steps(engine: Engine, options: lifecycle.Options, making: Made, progress: Progress) -> None:
        made.append({"images": {image.name for image in making.images}, "waited": making.waited})
        assert progress.total == lifecycle.STEPS

    engine, source = Engine("podman"), Source("build", "x")
    monkeypatch.setattr(Supply, "_made_here", lambda self, image: True)
    monkeypatch.setattr(Supply, "_is_there", lambda self, image: True)
    monkeypatch.setattr(lifecycle, "Supply", Made)
    monkeypatch.setattr(lifecycle, "exists", lambda engine, name: False)
    monkeypatch.setattr(lifecycle, "_check_machine", lambda engine: None)
    monkeypatch.setattr(lifecycle, "_up", steps)
    lifecycle.up(engine, lifecycle.Options("lab", source))
    progress = Progress(lifecycle.STEPS)
    lifecycle.up(engine, lifecycle.Options("lab", source), Made(engine, source, walked | INSTALLED), progress)
    first, run = made
    assert run["images"] <= first["images"] == first["waited"], "the README's cluster lacks what the walks use"


def test_what_has_to_be_shown_is_shown_by_a_command_of_the_readme() -> None:
    page = walks.read((ROOT / "README.md").read_text())
    for check_id, due in readme.SHOWN.items():
        commands = page.walk(check_id.partition(".")[2].replace("-", " ")).commands
        for begin in due:
            assert any(command.startswith(begin) for command in commands), begin


def test_a_clone_has_what_git_would_give(tmp_path: Path) -> None:
    tree = readme._clone(tmp_path / "tree")
    for name in ("README.md", "bin/trainyard", "pipelines/mnist.py", "examples/ddp/train.py"):
        assert (tree / name).read_bytes() == (ROOT / name).read_bytes()
    assert os.access(tree / "bin/trainyard", os.X_OK) and not list(tree.rglob("__pycache__"))
