"""Progress of long work: what is done now, of how much, and for how long."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager


class Progress:
    """Counts named steps. On a terminal the running step's seconds tick; elsewhere each step is a line at its end."""

    def __init__(self, total: int, title: str = "") -> None:
        self.total, self.done, self.started = total, 0, time.monotonic()
        self.steps: list[tuple[str, float, float]] = []  # (name, start, end) in Unix seconds, ended steps only
        self.live = sys.stdout.isatty()
        if title:
            print(f"{title} ({total} {'step' if total == 1 else 'steps'})", flush=True)

    @contextmanager
    def step(self, name: str) -> Iterator[None]:
        """One step; its line ends with the seconds it took, or with FAILED."""
        self.done += 1
        head = f"  [{self.done}/{self.total}] {name}"
        began, since, stop = time.monotonic(), time.time(), threading.Event()

        def tick() -> None:
            while not stop.wait(1.0):
                print(f"\r{head} … {time.monotonic() - began:.0f} s", end="", flush=True)

        ticker = threading.Thread(target=tick, daemon=True)
        if self.live:
            ticker.start()
        ending = "FAILED after "
        try:
            yield
            ending = ""
        finally:
            stop.set()
            if self.live:
                ticker.join()
                print("\r", end="")
            self.steps.append((name, since, time.time()))
            print(f"{head} … {ending}{time.monotonic() - began:.1f} s", flush=True)

    def skip(self, names: int = 1) -> None:
        """Counts steps that had nothing to do."""
        self.done += names
