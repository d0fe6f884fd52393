"""Loops that repeat a check until they are told to stop."""

from __future__ import annotations

import json
import signal
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from trainyard_agent.say import PlatformError, say


def told_to_stop(signs: Sequence[signal.Signals] = (signal.SIGTERM, signal.SIGINT)) -> threading.Event:
    """An event that is set once the process receives one of these signals."""
    stop = threading.Event()
    for sign in signs:
        signal.signal(sign, lambda *_: stop.set())
    return stop


def run(
    look: Callable[[dict[str, Any]], None], contract_file: str, period: float, *, well: str = "", once: bool = False
) -> int:
    """Calls `look` with the contract every `period` seconds until told to stop; prints each error once and tries again.

    Args:
        look: one round. Raises PlatformError.
        well: message printed once nothing is wrong any more.
        once: run once and end. Raises PlatformError then.
    """
    stop, before = threading.Event() if once else told_to_stop(), ""
    while True:
        trouble = ""
        try:
            look(json.loads(Path(contract_file).read_text()))
        except (OSError, ValueError, KeyError) as error:
            trouble = f"the contract in {contract_file} can't be read: {error}"
        except PlatformError as error:
            trouble = str(error)
        if once and trouble:
            raise PlatformError(trouble)
        if trouble != before and (trouble or well):
            say(trouble or well)
        before = trouble
        if once or stop.wait(period):
            return 0
