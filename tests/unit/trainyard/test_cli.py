"""The command line: every verb loads, every error is one sentence with its exit code."""

import re
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import click
import pytest

from trainyard import cli
from trainyard.errors import TrainyardError, UsageError
from trainyard.paths import ROOT, data_dir
from trainyard_dev.versions import load

Call = Callable[..., Any]


def test_help_lists_every_command(trainyard: Call) -> None:
    ended = trainyard("--help")
    assert ended.code == 0
    for name in cli.COMMANDS:
        assert re.search(rf"^  {name} +\S", ended.out, re.M), name


@pytest.mark.parametrize("name", sorted(cli.COMMANDS))
def test_every_command_and_verb_explains_itself(name: str, trainyard: Call) -> None:
    ended = trainyard(name, "--help")
    assert (ended.code, ended.err) == (0, "")
    command = cli.trainyard.get_command(click.Context(cli.trainyard), name)
    for verb in getattr(command, "commands", {}):
        below = trainyard(name, verb, "-h")
        assert below.code == 0
        assert len(below.out.splitlines()) > 3


def test_version(trainyard: Call) -> None:
    assert trainyard("--version").out == f"trainyard {load().raw['trainyard']}\n"


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["nothing"], "error: no such command 'nothing'\nhint: run `trainyard --help`\n"),
        (["trian"], "error: no such command 'trian'\nhint: did you mean train?\n"),
        (["cluster", "nothing"], "error: no such command 'nothing'\nhint: run `trainyard cluster --help`\n"),
        (["cluster", "up", "--images", "push"], "'push' is not one of 'auto', 'pull', 'build'"),
        (["cluster", "up", "--gpus", "four"], "'four' is not a valid integer"),
        (["cluster", "up", "--gpu-count", "4"], "no such option"),
        (["cluster", "load"], "missing argument 'IMAGE'"),
    ],
)
def test_wrong_usage(words: list[str], says: str, trainyard: Call) -> None:
    ended = trainyard(*words)
    assert ended.code == 2
    assert says in ended.err
    assert "Traceback" not in ended.err


@pytest.mark.parametrize(
    ("error", "code", "says"),
    [
        (TrainyardError("it broke", where="here", hint="hint it"), 1, "here: it broke. hint it."),
        (TrainyardError("it broke"), 1, "it broke."),
        (TrainyardError("it said so itself.", hint="hint it."), 1, "it said so itself. hint it."),
        (UsageError("wrong word", hint="use another"), 2, "wrong word. use another."),
        (OSError(28, "No space left on device", "/x/y"), 1, "/x/y: No space left on device. run `trainyard doctor`."),
        (PermissionError(13, "Permission denied"), 1, "Permission denied. run `trainyard doctor`."),
        (KeyboardInterrupt(), 130, "interrupted."),
        (click.Abort(), 130, "interrupted."),
    ],
)
def test_errors_end_as_one_sentence(
    error: BaseException, code: int, says: str, trainyard: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(ctx: click.Context) -> None:
        raise error

    monkeypatch.setattr(cli.trainyard, "invoke", broken)
    ended = trainyard("tools", "list")
    assert ended.code == code
    assert ended.error() == says


def test_a_bug_is_not_hidden(trainyard: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cli.trainyard, "invoke", lambda ctx: {}["bug"])
    with pytest.raises(KeyError):
        trainyard("tools", "list")


def test_unknown_tool(trainyard: Call) -> None:
    assert trainyard("tools", "path", "nothing").error() == "versions.yaml: no tool set builds `nothing`."


def test_lists(trainyard: Call) -> None:
    tools, images = trainyard("tools", "list").out, trainyard("images", "list").out
    assert re.search(r"^helm +v[\d.]+ +host +(not )?built$", tools, re.M)
    assert re.search(r"^site.invalid/trainyard/platform:\S+ +ours +.*Job trainyard-setup", images, re.M)
    assert "localhost/" not in images


def test_the_module_runs_from_any_folder() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "trainyard", "--version"],
        cwd="/",
        env={"PYTHONPATH": str(ROOT / "scripts"), "PATH": "/usr/bin"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_data_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    monkeypatch.delenv("TRAINYARD_DATA", raising=False)
    assert data_dir() is None
    monkeypatch.setenv("TRAINYARD_DATA", str(tmp_path / "absent"))
    assert data_dir() is None
    monkeypatch.setenv("TRAINYARD_DATA", str(tmp_path))
    assert data_dir() == tmp_path.resolve()
