"""Progress of long work: the current step, the number of steps, and the time taken."""

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import Progress as Ticker
from rich.progress import TextColumn

from trainyard.terminal import redrawable


class Progress:
    """Counts named steps. On a terminal the running step's seconds tick; elsewhere each step is a line at its end."""

    def __init__(self, total: int, title: str = "") -> None:
        self.total, self.done, self.started = total, 0, time.monotonic()
        self.steps: list[tuple[str, float, float]] = []  # (name, start, end) in Unix seconds, ended steps only
        self.live = redrawable(sys.stdout)
        if title:
            print(f"{title} ({total} {'step' if total == 1 else 'steps'})", flush=True)

    @contextmanager
    def step(self, name: str) -> Iterator[None]:
        """Runs the body as one step; its line ends with the seconds it took, or with FAILED."""
        self.done += 1
        head = f"  [{self.done}/{self.total}] {name}"
        began, since, ending = time.monotonic(), time.time(), "FAILED after "
        seconds = TextColumn("{task.description} … {task.elapsed:.0f} s", markup=False)
        try:
            # Other output meanwhile goes above the line that ticks.
            with Ticker(seconds, console=Console(), transient=True, disable=not self.live) as ticker:
                ticker.add_task(head, total=None)
                yield
            ending = ""
        finally:
            self.steps.append((name, since, time.time()))
            print(f"{head} … {ending}{time.monotonic() - began:.1f} s", flush=True)
