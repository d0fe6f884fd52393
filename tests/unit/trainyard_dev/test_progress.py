"""Progress of long work reads well in a log and ticks on a terminal; colours are for terminals that want them."""

import io
import re
import time

import pytest

from trainyard.terminal import coloured
from trainyard_dev.progress import Progress


def test_progress_in_a_log_is_one_line_a_step(capsys: pytest.CaptureFixture[str]) -> None:
    progress = Progress(2, "Work")
    with progress.step("first"):
        assert capsys.readouterr().out == "Work (2 steps)\n"
    with pytest.raises(ValueError, match="no"), progress.step("second"):
        raise ValueError("no")
    shown = capsys.readouterr().out
    assert "\r" not in shown
    first, second = shown.splitlines()
    assert re.fullmatch(r"  \[1/2\] first … \d+\.\d s", first)
    assert re.fullmatch(r"  \[2/2\] second … FAILED after \d+\.\d s", second)


def test_progress_keeps_the_times_of_its_steps() -> None:
    progress = Progress(3)
    with progress.step("a"):
        pass
    ((name, start, end),) = progress.steps
    assert name == "a"
    assert start <= end
    assert progress.done == 1


def test_progress_says_step_for_one(capsys: pytest.CaptureFixture[str]) -> None:
    Progress(1, "Work")
    assert capsys.readouterr().out == "Work (1 step)\n"


def pretend(monkeypatch: pytest.MonkeyPatch, *, terminal: bool, **environment: str) -> None:
    """Standard output as it is captured now is a terminal, or none."""
    monkeypatch.setattr("sys.stdout.isatty", lambda: terminal, raising=False)
    for name, value in {"TERM": "xterm", **environment}.items():
        monkeypatch.setenv(name, value)


def test_progress_on_a_terminal_ticks(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    pretend(monkeypatch, terminal=True)
    progress = Progress(1)
    with progress.step("slow [x]"):
        print("made between")
        time.sleep(1.1)
    shown = capsys.readouterr().out
    assert "  [1/1] slow [x] … 1 s" in shown
    assert "\x1b[2Kmade between\n" in shown, "a line of its own"
    assert shown.endswith(" s\n")


@pytest.mark.parametrize(
    ("terminal", "name", "value"), [(True, "TERM", "dumb"), (False, "FORCE_COLOR", "1"), (False, "TTY_COMPATIBLE", "1")]
)
def test_progress_keeps_control_characters_out_of_logs(
    terminal: bool, name: str, value: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    pretend(monkeypatch, terminal=terminal, **{name: value})
    with Progress(1).step("a"):
        print("between")
    assert re.fullmatch(r"between\n  \[1/1\] a … \d\.\d s\n", capsys.readouterr().out)


@pytest.mark.parametrize(
    ("environment", "terminal_there", "colours"),
    [
        ({"TERM": "xterm"}, True, True),
        ({"TERM": "xterm", "NO_COLOR": ""}, True, True),
        ({"TERM": "xterm", "NO_COLOR": "1"}, True, False),
        ({"TERM": "dumb"}, True, False),
        ({}, True, False),
        ({"TERM": "xterm"}, False, False),
    ],
)
def test_when_colours_are_shown(
    environment: dict[str, str], terminal_there: bool, colours: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("TERM", "NO_COLOR"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    stream = io.StringIO()
    stream.isatty = lambda: terminal_there  # type: ignore[method-assign]
    assert coloured(stream) is colours
