"""Timestamped lines on standard output, and the one exception that ends a command."""

from __future__ import annotations

import sys
import time


class PlatformError(Exception):
    """An error that ends the command; its text is one sentence."""

    exit_code = 1


def say(text: str) -> None:
    """Print one line with the time of day (UTC)."""
    print(f"{time.strftime('%H:%M:%S', time.gmtime())} {text}", flush=True)


def fail(error: PlatformError) -> int:
    """Print the reason to standard error; returns the exit status."""
    print(f"error: {error}", file=sys.stderr, flush=True)
    return error.exit_code
