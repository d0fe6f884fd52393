"""Stops a step: deletes what it made, unless only its pod has to go."""

import contextlib
import os
import signal
import socket
from collections.abc import Callable, Iterator
from typing import Any, NoReturn

from trainyard.errors import TrainyardError
from trainyard.pipelines.steps.jobs import Jobs
from trainyard_agent.api import ApiError

CODE = 128 + signal.SIGTERM


class Stopped(BaseException):
    """The step got SIGTERM: its run was stopped, or its node is drained."""


@contextlib.contextmanager
def stoppable() -> Iterator[None]:
    """Raises Stopped inside the block on SIGTERM, once."""

    def stop(*_: Any) -> None:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        raise Stopped

    before = signal.signal(signal.SIGTERM, stop)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def stop(jobs: Jobs, title: str, take_away: Callable[[], None]) -> NoReturn:
    """Calls `take_away`, unless only this pod has to go; ends the process with code 143."""
    with contextlib.suppress(OSError):  # the output may be closed
        if evicted(jobs, socket.gethostname()):
            print(f"this pod is being removed: {title} continues, and the next attempt adopts it", flush=True)
            os._exit(CODE)
        print(f"the step is being stopped, and {title} with it", flush=True)
    with open(os.devnull, "w") as nowhere, contextlib.redirect_stdout(nowhere), contextlib.suppress(TrainyardError):
        take_away()
    os._exit(CODE)


def evicted(jobs: Jobs, pod: str) -> bool:
    """Whether the pod itself is being deleted, as when its node is drained. Stopping a run only signals its pods."""
    try:
        found = jobs.api.call("GET", f"/api/v1/namespaces/{jobs.namespace}/pods/{pod}")
    except ApiError:
        return False
    return bool(found["metadata"].get("deletionTimestamp"))
