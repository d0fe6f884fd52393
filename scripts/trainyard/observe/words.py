"""Why a program failed, out of the last lines that it printed."""

from __future__ import annotations

import re
from collections.abc import Sequence

TOLD = "error: "  # how our own steps and trainers say it in one line
TRACEBACK = "Traceback (most recent call last)"
MODULE = re.compile(r"^(?:\w+\.)+(?=\w+(?::|$))")  # in front of an exception's name


def reason(lines: Sequence[str]) -> str:
    """What went wrong by a program's last lines: its own word, the exception behind a traceback, or the last three."""
    found = [line for line in lines if line.strip()]
    told = [line for line in found if line.startswith(TOLD)]
    if told:
        return told[-1].removeprefix(TOLD)
    at = max((number for number, line in enumerate(found) if TRACEBACK in line), default=-1)
    if at >= 0:
        after = [line for line in found[at + 1 :] if not line.startswith((" ", "\t"))]
        if after:
            return MODULE.sub("", " | ".join(after[:3]))
    return " | ".join(line.strip() for line in found[-3:])
