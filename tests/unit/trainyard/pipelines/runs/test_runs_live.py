"""The live view on a terminal made by the test: keys select a step, its log is shown, leaving ends only the view."""

import os
import pty
import re
import select
import signal
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from trainyard.paths import ROOT

CHILD = """
import sys, time
from datetime import UTC, datetime
from trainyard.pipelines.runs import live, logs, nodes, snapshot
from trainyard.pipelines.runs.snapshot import RunSnapshot

def workflow(phase, train):
    def node(id, name, kind, phase, **more):
        return {"id": id, "name": name, "displayName": name.split(".")[-1], "type": kind, "phase": phase,
                "startedAt": "2026-03-01T10:00:00Z", "boundaryID": "w", **more}
    found = [node("w", "w", "DAG", phase), node("p", "w.prepare", "Pod", "Succeeded")]
    found += [node("t", "w.train", "Pod", train)]
    found[0].pop("boundaryID")
    return {"metadata": {"name": "w", "namespace": "vision"}, "spec": {},
            "status": {"phase": phase, "nodes": {one["id"]: one for one in found}}}

def looker(kube, name, say):
    def poll():
        import os
        over = os.path.exists(sys.argv[1])
        return RunSnapshot(nodes.run(workflow("Succeeded" if over else "Running", "Succeeded" if over else "Running")),
                     datetime(2026, 3, 1, 10, 1, tzinfo=UTC))
    return poll

def lines(kube, run, step, **_):
    yield f"log of {step.name}".encode()

snapshot.fetch = lambda kube, name: workflow("Running", "Running")
logs.lines = lines
try:
    print("ended as", live.follow(None, "w", looker, 0.05).state)
except KeyboardInterrupt:
    print("left")
"""


class Terminal:
    """A program on a terminal: what it shows, and keys for it."""

    def __init__(self, *argv: str) -> None:
        self.process, self._fd = pty.fork()
        if self.process == 0:
            os.environ |= {"PYTHONPATH": str(ROOT / "scripts"), "TERM": "xterm", "LINES": "20", "COLUMNS": "90"}
            os.execv(sys.executable, [sys.executable, *argv])
        self.shown = ""

    def until(self, words: str) -> None:
        """Waits until the words were shown since the last call."""
        end = time.monotonic() + 60
        while words not in self.shown:
            assert time.monotonic() < end, self.shown
            if select.select([self._fd], [], [], 0.1)[0]:
                try:
                    text = os.read(self._fd, 65536).decode(errors="replace")
                except OSError:  # the program has ended
                    text = ""
                    assert words in self.shown, self.shown
                self.shown += re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", text)
        self.shown = self.shown[self.shown.index(words) + len(words) :]

    def press(self, keys: str) -> None:
        os.write(self._fd, keys.encode())


@pytest.fixture
def over(tmp_path: Path) -> Path:
    """A file whose existence ends the run."""
    return tmp_path / "over"


@pytest.fixture
def terminal(tmp_path: Path, over: Path) -> Iterator[Terminal]:
    script = tmp_path / "child.py"
    script.write_text(CHILD)
    found = Terminal(str(script), str(over))
    yield found
    os.kill(found.process, signal.SIGKILL)
    os.waitpid(found.process, 0)


def test_keys(terminal: Terminal, over: Path) -> None:
    terminal.until("train    running")
    terminal.press("\x1b[B\x1b[B")
    terminal.until("> train")
    terminal.press("\r")
    terminal.until("log of train")
    terminal.press("q")
    terminal.until("> train")
    over.touch()
    terminal.until("ended as succeeded")


def test_leaving(terminal: Terminal) -> None:
    terminal.until("w in vision: running")
    terminal.press("q")
    terminal.until("left")
