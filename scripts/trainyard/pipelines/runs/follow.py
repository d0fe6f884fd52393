"""Follows a run to its end: redrawn on a terminal, a line for each change elsewhere."""

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from trainyard.errors import TrainyardError
from trainyard.kube import Kube, KubeError
from trainyard.pipelines.runs import live, table
from trainyard.pipelines.runs.model import Run
from trainyard.pipelines.runs.snapshot import Observer, RunSnapshot

POLL_INTERVAL_S = 1.5
PATIENCE_S = 300.0  # following stops when the cluster has not answered for so long; the run continues


class Poller:
    """Polls a run repeatedly, and tolerates a cluster that is unavailable for a while."""

    def __init__(self, kube: Kube, name: str, say: Callable[[str], None]) -> None:
        self._observer, self._say = Observer(kube, name), say
        self._away_since = 0.0

    def __call__(self) -> RunSnapshot | None:
        """The current state; None while the cluster doesn't answer. Raises KubeError if that lasts too long."""
        try:
            snapshot = self._observer.poll()
        except KubeError as error:
            if error.status and error.status < 500 and error.status != 429:
                raise
            if not self._away_since:
                self._away_since = time.monotonic()
                self._say(f"{error.what}; trying again")
            if time.monotonic() - self._away_since > PATIENCE_S:
                raise
            return None
        self._away_since = 0.0
        return snapshot


def to_end(kube: Kube, name: str) -> Run:
    """Returns the run when it has ended. Ctrl-C only ends the following, and a message says so."""
    with _followed(kube, name):
        if live.possible():
            return live.follow(kube, name, Poller, POLL_INTERVAL_S)
        return _plain(kube, name)


def quietly(kube: Kube, name: str) -> Run:
    """Returns the run when it has ended, without output."""
    poll = Poller(kube, name, lambda text: None)
    with _followed(kube, name):
        while True:
            snapshot = poll()
            if snapshot and snapshot.run.ended:
                return snapshot.run
            time.sleep(POLL_INTERVAL_S)


@contextmanager
def _followed(kube: Kube, name: str) -> Iterator[None]:
    try:
        yield
    except KeyboardInterrupt:
        print(f"\nthe run goes on. {again(name, kube.namespace)}", file=sys.stderr)
        raise
    except KubeError as error:
        if error.status == 404:
            raise TrainyardError(f"run {name} was deleted while it was followed") from None
        raise


def again(name: str, namespace: str) -> str:
    """The commands to return to a run."""
    whole = f"{name} -n {namespace}"
    return f"follow: `trainyard runs show {whole} --follow`; stop: `trainyard runs stop {whole}`"


def _plain(kube: Kube, name: str) -> Run:
    poll = Poller(kube, name, lambda text: print(text, file=sys.stderr, flush=True))
    before: RunSnapshot | None = None
    while True:
        snapshot = poll()
        if snapshot:
            for line in table.changes(before, snapshot):
                print(line, flush=True)
            before = snapshot
            if snapshot.run.ended:
                return snapshot.run
        time.sleep(POLL_INTERVAL_S)
