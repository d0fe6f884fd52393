"""Runs other programs, and converts a failure to one readable error."""

import os
import shlex
import signal
import subprocess
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from trainyard.errors import TrainyardError

LACKING = "install it and see that PATH has it"  # hint for a missing program; a checkout has a better one


class CommandError(TrainyardError):
    """A program ended with a non-zero code; `output` holds everything that it printed."""

    def __init__(self, what: str, *, output: str, returncode: int, hint: str = "") -> None:
        super().__init__(what, hint=hint)
        self.output, self.returncode = output, returncode


def run(
    argv: Sequence[str | Path],
    *,
    cwd: Path | None = None,
    env: Mapping[str, str] | None = None,
    input: str | None = None,
    timeout: float | None = None,
    check: bool = True,
    hint: str = "",
) -> subprocess.CompletedProcess[str]:
    """Runs `argv` with its output captured as text.

    Args:
        env: variables set on top of this process' own.
        timeout: seconds; a program that runs longer is killed and counts as failed.
        check: raise on a non-zero exit code.
        hint: what to do when it fails.

    Raises:
        CommandError: naming the command and the last lines that it printed.
    """
    words = [str(a) for a in argv]
    shown = _shown(words)
    try:
        done = subprocess.run(
            words,
            cwd=cwd,
            env={**os.environ, **(env or {})},
            input=input,
            timeout=timeout,
            capture_output=True,
            text=True,
            errors="replace",
            check=False,
            stdin=subprocess.DEVNULL if input is None else None,
        )
    except FileNotFoundError:
        raise TrainyardError(f"{words[0]} is not installed", hint=hint or LACKING) from None
    except subprocess.TimeoutExpired as error:
        raise CommandError(
            f"`{shown}` did not finish within {timeout:.0f} s",
            output=str(error.output or ""),
            returncode=124,
            hint=hint,
        ) from None
    if check and done.returncode:
        output = done.stdout + done.stderr
        raise CommandError(
            f"`{shown}` failed with code {done.returncode}: {last_lines(done.stderr or done.stdout)}",
            output=output,
            returncode=done.returncode,
            hint=hint,
        )
    return done


@contextmanager
def uninterrupted() -> Iterator[None]:
    """Protects clean-up: Ctrl-C and termination requests are ignored by the body and the programs that it starts."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.signal(number, signal.SIG_IGN) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _shown(words: list[str]) -> str:
    """A command line short enough for one sentence: six words, none longer than a path, without scripts."""
    short = ["…" if "\n" in word or len(word) > 100 else shlex.quote(word) for word in words[:6]]
    return " ".join(short) + (" …" if len(words) > 6 else "")


def last_lines(text: str, count: int = 4) -> str:
    """The last non-empty lines of a program's output, joined into one."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return " | ".join(lines[-count:]) or "it printed nothing"
