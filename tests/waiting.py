"""Waiting for an outcome, for all levels of tests."""

import time
from collections.abc import Callable
from typing import Any


def wait(look: Callable[[], Any], what: str, seconds: float = 20.0, every: float = 0.05) -> Any:
    """Calls `look` every `every` seconds until it returns something true, and returns that."""
    end = time.monotonic() + seconds
    while not (found := look()):
        assert time.monotonic() < end, f"{what} did not come"
        time.sleep(every)
    return found
