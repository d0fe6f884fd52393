"""The closing table of a run on the terminal, and the verdict in one line."""

import shutil
import sys
import textwrap
from collections.abc import Mapping
from typing import Any, TextIO

from trainyard.terminal import coloured
from trainyard_dev.report import groups
from trainyard_dev.report.model import Check, Run
from trainyard_dev.report.plain import clean, duration, figure, words

PAINT = {"passed": "32", "failed": "31", "skipped": "33"}
NARROW, WIDE = 60, 140
FIRST = ("accuracy", "device", "backend")


def show(run: Run, *, stream: TextIO | None = None, width: int | None = None, colour: bool | None = None) -> None:
    """Print the table and the verdict to ``stream`` (standard output)."""
    target = stream or sys.stdout
    columns = width or shutil.get_terminal_size((100, 24)).columns
    target.write(render(run, width=columns, colour=coloured(target) if colour is None else colour))


def render(run: Run, *, width: int = 100, colour: bool = False) -> str:
    """A line for each check with the reason below it, then the time, the verdict, and after a failure its cause."""
    size = min(max(width, NARROW), WIDE)
    longest = max((len(c.id) for c in run.checks), default=0)
    lines = [""]
    for group, checks in groups.grouped(run.checks).items():
        lines += [f"{groups.title(group)} ({groups.passed_of(checks)})"]
        for check in checks:
            lines += _lines(check, longest, size, colour)
        lines.append("")
    if not run.checks:
        lines += ["No check ran.", ""]
    if run.gpu.kind == "mock":
        lines.append("GPUs were mock: allocation and scheduling are tested, CUDA is not.")
    note = "" if run.verdict.passed or run.verdict.failed else ": nothing was proved"
    lines.append(f"The run took {duration(run.seconds)}{note}.")
    lines.append(str(run.verdict))
    if run.cause:
        lines += textwrap.wrap(f"Probable cause: {one_line(run.cause)}", size)
    return "\n".join(lines) + "\n"


def key_figures(figures: Mapping[str, Any], most: int = 4) -> str:
    """The first few short figures in one line, beginning with those about trainings; long ones are on the page."""
    short = []
    for key in sorted(figures, key=lambda k: FIRST.index(k) if k in FIRST else len(FIRST)):
        value = figures[key]
        text = one_line(figure(value))
        if isinstance(value, Mapping):
            text = f"in {len(value)} pods" if key == "devices" else f"{len(value)} entries"
        elif len(text) > 32:
            text = text[:31] + "\u2026"
        short.append(f"{words(clean(key))} {text}")
    return ", ".join(short[:most])


def one_line(text: str) -> str:
    """``text`` on one line, without terminal escapes."""
    return " ".join(clean(text).split())


def _lines(check: Check, longest: int, width: int, colour: bool) -> list[str]:
    state = f"{check.status:<7}"
    if colour:
        state = f"\x1b[{PAINT[check.status]}m{state}\x1b[0m"
    took = duration(check.seconds) if check.seconds else ""
    lead = longest + 2 + 7 + 2 + 12 + 2
    figures = _refused(check) if check.group == groups.ATTACK else key_figures(check.shown_figures)
    room = max(20, width - lead)
    wrapped = textwrap.wrap(figures, room) or [""]
    result = [f"{check.id:<{longest}}  {state}  {took:>12}  {wrapped[0]}".rstrip()]
    result += [" " * lead + more for more in wrapped[1:]]
    if check.reason:
        result += textwrap.wrap(one_line(check.reason), width, initial_indent="    ", subsequent_indent="    ")
    return result


def _refused(check: Check) -> str:
    """A refused attack in a few words; the page has the message."""
    refusal = groups.refusal(check)
    by = f"refused by {refusal['refused_by']}" if refusal["refused_by"] else ""
    return one_line(": ".join(filter(None, (refusal["who"], refusal["tried"], by))))
