"""The live view of a run on a terminal: a table that is redrawn, keys that choose a step and show its log."""

from __future__ import annotations

import contextlib
import os
import queue
import select
import shutil
import sys
import threading
import time
from collections.abc import Callable, Iterator

from trainyard.errors import TrainyardError
from trainyard.kube import Kube
from trainyard.runs import logs, nodes, scene, table
from trainyard.runs.model import Run
from trainyard.runs.scene import Scene

UP, DOWN, ENTER, LEAVE = "up", "down", "enter", "leave"
KEYS = {"\x1b[A": UP, "\x1bOA": UP, "k": UP, "\x1b[B": DOWN, "\x1bOB": DOWN, "j": DOWN, "\r": ENTER, "\n": ENTER}
KEYS |= {"l": ENTER, "q": LEAVE, "\x1b": LEAVE}
HELP = "↑ ↓ choose a step, Enter shows its log, q leaves (the run goes on)"
CLEAR, HOME, REST, END_OF_LINE = "\x1b[2J\x1b[H", "\x1b[H", "\x1b[J", "\x1b[K"


def possible() -> bool:
    """Whether this terminal can be redrawn."""
    if os.environ.get("TERM", "dumb") == "dumb":
        return False
    with contextlib.suppress(ImportError):
        import termios  # noqa: F401  absent where there are no such terminals

        return True
    return False


def follow(kube: Kube, name: str, looker: Callable[..., Callable[[], Scene | None]], look_s: float) -> Run:
    """Returns the run when it has ended, or raises KeyboardInterrupt when its reader leaves."""
    notice = [""]
    look = looker(kube, name, lambda text: notice.__setitem__(0, text))
    chosen, seen, due = "", None, 0.0
    with _keys():
        try:
            print(CLEAR, end="")
            while True:
                if time.monotonic() >= due:
                    found = look()
                    due = time.monotonic() + look_s
                    if found:
                        seen, notice[0] = found, ""
                    if seen:
                        _draw(seen, chosen, notice[0])
                    if seen and seen.run.ended:
                        return seen.run
                key = _key(max(0.05, due - time.monotonic()))
                if key == LEAVE:
                    raise KeyboardInterrupt
                if key in (UP, DOWN) and seen:
                    chosen = _moved(seen, chosen, key)
                    _draw(seen, chosen, notice[0])
                elif key == ENTER and seen and chosen:
                    _log(kube, seen.run.name, chosen)
                    print(CLEAR, end="")
                    due = 0.0
        finally:
            print(HOME + REST, end="", flush=True)
            if seen:
                print("\n".join(table.lines(seen, width=shutil.get_terminal_size().columns, colour=True)), flush=True)


def _draw(seen: Scene, chosen: str, notice: str) -> None:
    size = shutil.get_terminal_size()
    lines = table.lines(seen, width=size.columns, height=size.lines - 1, colour=True, chosen=chosen)
    lines += [notice or HELP[: size.columns]]
    print(HOME + "".join(f"{line}{END_OF_LINE}\n" for line in lines) + REST, end="", flush=True)


def _moved(seen: Scene, chosen: str, key: str) -> str:
    ids = [step.id for step in table.visible(seen, shutil.get_terminal_size().lines - 1)]
    if not ids:
        return ""
    if chosen not in ids:
        return ids[0] if key == DOWN else ids[-1]
    return ids[(ids.index(chosen) + (1 if key == DOWN else -1)) % len(ids)]


def _log(kube: Kube, name: str, step_id: str) -> None:
    """Shows a step's log as it comes, until its reader goes back."""
    lines: queue.Queue[str] = queue.Queue()
    stop = threading.Event()

    def read() -> None:
        try:
            run = nodes.run(scene.fetch(kube, name))
            for line in logs.lines(kube, run, run.find(step_id), follow=True, say=lines.put):
                lines.put(line.decode(errors="replace"))
                if stop.is_set():
                    return
            lines.put("(the log ends here)")
        except TrainyardError as error:
            lines.put(str(error))

    print(f"{CLEAR}q goes back to the table\n", flush=True)
    threading.Thread(target=read, daemon=True).start()
    while _key(0.2) != LEAVE:
        with contextlib.suppress(queue.Empty):
            while True:
                print(lines.get_nowait(), flush=True)
    stop.set()


def _key(timeout_s: float) -> str:
    """The next key, or "" when none came in time. An escape sequence is read whole."""
    if not select.select([sys.stdin], [], [], timeout_s)[0]:
        return ""
    text = os.read(sys.stdin.fileno(), 8).decode(errors="replace")
    return KEYS.get(text, "")


@contextlib.contextmanager
def _keys() -> Iterator[None]:
    """Keys come one by one and are not echoed; Ctrl-C still interrupts."""
    import termios
    import tty

    before = termios.tcgetattr(sys.stdin)
    try:
        tty.setcbreak(sys.stdin.fileno())
        print("\x1b[?25l", end="", flush=True)
        yield
    finally:
        termios.tcsetattr(sys.stdin, termios.TCSADRAIN, before)
        print("\x1b[?25h", end="", flush=True)
