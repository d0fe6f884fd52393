"""One deadline for everything that a command waits for."""

from __future__ import annotations

import time
from collections.abc import Callable

from trainyard_agent.say import PlatformError, say


class Clock:
    """One deadline for all waits together."""

    def __init__(self, seconds: float) -> None:
        self.end = time.monotonic() + seconds

    def wait(self, what: str, ready: Callable[[], str], *, quiet: bool = False) -> None:
        """Call `ready`, which returns the reason to wait, until it returns "". Raises PlatformError at the deadline.

        Args:
            quiet: `ready` itself prints what it did.
        """
        start, said, pause = time.monotonic(), "", 0.3
        while True:
            reason = ready()
            if not reason:
                if not quiet:
                    say(f"{what}: ready after {time.monotonic() - start:.1f} s")
                return
            if reason != said:
                say(f"{what}: {reason}")
                said = reason
            if time.monotonic() > self.end:
                raise PlatformError(f"gave up waiting for {what}: {reason}")
            time.sleep(pause)
            pause = min(pause * 1.5, 2.0)
