"""Lines on standard output, with the time, and the one kind of error that ends a command."""

from __future__ import annotations

import sys
import time


class PlatformError(Exception):
    """Something that the command can't get past; its text is one sentence."""


def say(text: str) -> None:
    """Print one line with the time of day (UTC)."""
    print(f"{time.strftime('%H:%M:%S', time.gmtime())} {text}", flush=True)


def fail(text: str) -> int:
    """Print the reason to standard error; returns exit status 1."""
    print(f"trainyard: {text}", file=sys.stderr, flush=True)
    return 1
