"""The controllers of the tests' teams, each a process of its own as on a cluster."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from trainyard_dev.apiserver import ApiServer
from trainyard_dev.argo import NAME, Controller

TEAMS = ("vision", "speech")
# A machine for tests can look more often than a cluster should.
FASTER = {"DEFAULT_REQUEUE_TIME": "100ms"}


def of(server: ApiServer, objects: list[dict[str, Any]], folder: Path, team: str, **more: Any) -> Controller:
    """The controller of a team, not yet started."""
    return Controller(server, objects, f"{NAME}-{team}", folder, FASTER, **more)


@contextmanager
def running(server: ApiServer, objects: list[dict[str, Any]], folder: Path) -> Iterator[dict[str, Controller]]:
    """Runs those of all teams for the time of the body."""
    with ExitStack() as ends:
        found = {}
        for team in TEAMS:
            found[team] = of(server, objects, folder / f"argo-{team}", team)
            found[team].start()
            ends.callback(found[team].kill)
        yield found
