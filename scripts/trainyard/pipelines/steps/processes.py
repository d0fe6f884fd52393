"""Runs the programs of steps and ranks: prints and keeps their lines, and finds the reason of a failure in them."""

import contextlib
import os
import re
import signal
import subprocess
import threading
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TextIO

from trainyard.observe.words import reason
from trainyard.pipelines.steps.kfp_log import own

WARNING = re.compile(r"^\S+\.py:\d+: \w*Warning: ")
GRACE_S = 10.0
_lock = threading.Lock()


@dataclass(frozen=True)
class Ended:
    """The end of a program: its exit code and last lines."""

    code: int
    lines: list[str]

    @property
    def reason(self) -> str:
        """The exception without its stack frames, or the last lines."""
        return reason(self.lines) or f"it ended with code {self.code} and printed nothing"


class Processes:
    """The running programs, so that all of them can be ended. Thread-safe."""

    def __init__(self) -> None:
        self._running: set[subprocess.Popen[str]] = set()
        self._closed = False

    def run(self, argv: Sequence[str], *, name: str, folder: Path, env: Mapping[str, str], log: Path) -> Ended:
        """Runs `argv` in `folder` to its end; its lines are printed with the prefix `name` and appended to `log`."""
        with _lock:
            if self._closed:
                return Ended(130, ["interrupted"])
            process = subprocess.Popen(
                list(argv),
                cwd=folder,
                env={**os.environ, **env},
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                errors="replace",
                start_new_session=True,
            )
            self._running.add(process)
        kept: list[str] = []
        try:
            with log.open("a") as file:
                for text in own(_written(process.stdout or (), file)):
                    if text and not WARNING.match(text):
                        kept.append(text)
                        say(name, text)
                    del kept[:-60]
            code = process.wait()
        finally:
            with _lock:
                self._running.discard(process)
        return Ended(code if code >= 0 else 128 - code, kept)

    def end(self) -> None:
        """Ends all running programs: SIGTERM first, then SIGKILL. Nothing new starts afterwards."""
        with _lock:
            self._closed = True
            running = list(self._running)
        for process in running:
            _signal(process, signal.SIGTERM)
        until = time.monotonic() + GRACE_S
        for process in running:
            try:
                process.wait(max(0.1, until - time.monotonic()))
            except subprocess.TimeoutExpired:
                _signal(process, signal.SIGKILL)


def say(name: str, text: str) -> None:
    """Prints one line of a step."""
    with _lock:
        print(f"  {name} | {text}", flush=True)


def _written(lines: Iterable[str], file: TextIO) -> Iterator[str]:
    """The lines, each written to a file before it is returned."""
    for line in lines:
        file.write(line)
        yield line.rstrip("\n")


def _signal(process: subprocess.Popen[str], number: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, number)
