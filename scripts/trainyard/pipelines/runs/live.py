"""The live view of a run on a terminal: a table that is redrawn, and keys that choose a step and show its log."""

from __future__ import annotations

import contextlib
import os
import queue
import re
import select
import shutil
import sys
import threading
from collections.abc import Callable, Iterator

from trainyard.errors import TrainyardError
from trainyard.kube import Kube
from trainyard.pipelines.runs import logs, nodes, snapshot, table
from trainyard.pipelines.runs.model import Run
from trainyard.pipelines.runs.snapshot import RunSnapshot
from trainyard.terminal import coloured, redrawable

UP, DOWN, ENTER, LEAVE = "up", "down", "enter", "leave"
KEYS = {"\x1b[A": UP, "\x1bOA": UP, "k": UP, "\x1b[B": DOWN, "\x1bOB": DOWN, "j": DOWN, "\r": ENTER, "\n": ENTER}
KEYS |= {"l": ENTER, "q": LEAVE, "\x1b": LEAVE}
HELP = "↑ ↓ choose a step, Enter shows its log, q leaves (the run goes on)"
KEY = re.compile(r"\x1b[\[O][A-D]|.", re.DOTALL)
KEY_S = 0.1  # how long to wait for a key before the table is refreshed
CLEAR, HOME, REST, END_OF_LINE = "\x1b[2J\x1b[H", "\x1b[H", "\x1b[J", "\x1b[K"


def possible() -> bool:
    """Whether this is a terminal that can be redrawn and has a keyboard."""
    if not (sys.stdin.isatty() and redrawable(sys.stdout)):
        return False
    with contextlib.suppress(ImportError):
        import termios  # noqa: F401  absent where there are no such terminals

        return True
    return False


class _Watch(threading.Thread):
    """Polls the run in a separate thread, so that a slow cluster doesn't slow down the keys."""

    def __init__(self, poll: Callable[[], RunSnapshot | None], poll_interval_s: float) -> None:
        super().__init__(daemon=True)
        self._poll, self._poll_interval_s = poll, poll_interval_s
        self.seen: RunSnapshot | None = None
        self.error: TrainyardError | None = None
        self.count = 0
        self.over = threading.Event()

    def run(self) -> None:
        """Polls until the run has ended, polling fails, or the view is closed."""
        while not self.over.is_set():
            try:
                found = self._poll()
            except TrainyardError as error:
                self.error = error
                return
            if found:
                self.seen, self.count = found, self.count + 1
                if found.run.ended:
                    return
            self.over.wait(self._poll_interval_s)


def follow(
    kube: Kube, name: str, looker: Callable[..., Callable[[], RunSnapshot | None]], poll_interval_s: float
) -> Run:
    """Returns the run when it has ended, or raises KeyboardInterrupt when the user quits."""
    notice = [""]
    watch = _Watch(looker(kube, name, lambda text: notice.__setitem__(0, text)), poll_interval_s)
    chosen, drawn = "", -1
    with _keys() as keys:
        try:
            print(CLEAR, end="")
            watch.start()
            while True:
                if watch.error:
                    raise watch.error
                seen = watch.seen
                if seen and drawn != watch.count:
                    _draw(seen, chosen, notice[0])
                    drawn = watch.count
                    notice[0] = ""
                    if seen.run.ended:
                        return seen.run
                key = keys.next(KEY_S)
                if key == LEAVE:
                    raise KeyboardInterrupt
                if key in (UP, DOWN) and seen:
                    chosen, drawn = _moved(seen, chosen, key), -1
                elif key == ENTER and seen and chosen:
                    _log(kube, seen.run.name, chosen, keys)
                    print(CLEAR, end="")
                    drawn = -1
        finally:
            watch.over.set()
            print(HOME + REST, end="", flush=True)
            if watch.seen:
                size = shutil.get_terminal_size()
                print("\n".join(table.lines(watch.seen, width=size.columns, colour=coloured(sys.stdout))), flush=True)


def _draw(seen: RunSnapshot, chosen: str, notice: str) -> None:
    size = shutil.get_terminal_size()
    lines = table.lines(seen, width=size.columns, height=size.lines - 1, colour=coloured(sys.stdout), chosen=chosen)
    lines += [notice or HELP[: size.columns]]
    print(HOME + "".join(f"{line}{END_OF_LINE}\n" for line in lines) + REST, end="", flush=True)


def _moved(seen: RunSnapshot, chosen: str, key: str) -> str:
    ids = [step.id for step in table.visible(seen, shutil.get_terminal_size().lines - 1)]
    if not ids:
        return ""
    if chosen not in ids:
        return ids[0] if key == DOWN else ids[-1]
    return ids[(ids.index(chosen) + (1 if key == DOWN else -1)) % len(ids)]


def _log(kube: Kube, name: str, step_id: str, keys: _Keys) -> None:
    """Shows a step's log as it arrives, until the user goes back."""
    lines: queue.Queue[str] = queue.Queue()
    stop = threading.Event()

    def read() -> None:
        try:
            run = nodes.run(snapshot.fetch(kube, name))
            for line in logs.lines(kube, run, run.find(step_id), follow=True, say=lines.put):
                lines.put(line.decode(errors="replace"))
                if stop.is_set():
                    return
            lines.put("(the log ends here)")
        except TrainyardError as error:
            lines.put(str(error))

    print(f"{CLEAR}q goes back to the table\n", flush=True)
    threading.Thread(target=read, daemon=True).start()
    while keys.next(KEY_S) != LEAVE:
        with contextlib.suppress(queue.Empty):
            while True:
                print(lines.get_nowait(), flush=True)
    stop.set()


class _Keys:
    """Keys as they were typed, even several at once."""

    def __init__(self) -> None:
        self._typed: list[str] = []

    def next(self, timeout_s: float) -> str:
        """The next key with a meaning, or "" if none was typed in time."""
        if not self._typed and select.select([sys.stdin], [], [], timeout_s)[0]:
            self._typed = KEY.findall(os.read(sys.stdin.fileno(), 256).decode(errors="replace"))
        return KEYS.get(self._typed.pop(0), "") if self._typed else ""


@contextlib.contextmanager
def _keys() -> Iterator[_Keys]:
    """Keys one by one, without echo; Ctrl-C still interrupts."""
    import termios
    import tty

    before = termios.tcgetattr(sys.stdin)
    try:
        tty.setcbreak(sys.stdin.fileno())
        print("\x1b[?25l", end="", flush=True)
        yield _Keys()
    finally:
        termios.tcsetattr(sys.stdin, termios.TCSADRAIN, before)
        print("\x1b[?25h", end="", flush=True)
