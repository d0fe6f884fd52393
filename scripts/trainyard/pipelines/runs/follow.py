"""Follows a run to its end: redrawn on a terminal, a line for each change elsewhere."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable

from trainyard.errors import TrainyardError
from trainyard.kube import Kube, KubeError
from trainyard.pipelines.runs import live, table
from trainyard.pipelines.runs.model import Run
from trainyard.pipelines.runs.scene import Observer, Scene

LOOK_S = 1.5
PATIENCE_S = 300.0  # a cluster that doesn't answer for so long is given up; the run isn't


class Looker:
    """Looks again and again, and bears a cluster that is away for a while."""

    def __init__(self, kube: Kube, name: str, say: Callable[[str], None]) -> None:
        self._observer, self._say = Observer(kube, name), say
        self._away_since = 0.0

    def __call__(self) -> Scene | None:
        """What is there to see; None while the cluster doesn't answer. Raises KubeError when it stays away."""
        try:
            scene = self._observer.look()
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
        return scene


def to_end(kube: Kube, name: str) -> Run:
    """Returns the run when it has ended. Ctrl-C ends the following only, which is said."""
    try:
        if live.possible():
            return live.follow(kube, name, Looker, LOOK_S)
        return _plain(kube, name)
    except KeyboardInterrupt:
        print(f"\nthe run goes on. {again(name, kube.namespace)}", file=sys.stderr)
        raise
    except KubeError as error:
        if error.status == 404:
            raise TrainyardError(f"run {name} was deleted while it was followed") from None
        raise


def quietly(kube: Kube, name: str) -> Run:
    """The same without a word."""
    look = Looker(kube, name, lambda text: None)
    while True:
        scene = look()
        if scene and scene.run.ended:
            return scene.run
        time.sleep(LOOK_S)


def again(name: str, namespace: str) -> str:
    """How to come back to a run."""
    whole = f"{name} -n {namespace}"
    return f"follow: `trainyard runs show {whole} --follow`; stop: `trainyard runs stop {whole}`"


def _plain(kube: Kube, name: str) -> Run:
    look = Looker(kube, name, lambda text: print(text, file=sys.stderr, flush=True))
    before: Scene | None = None
    while True:
        scene = look()
        if scene:
            for line in table.changes(before, scene):
                print(line, flush=True)
            before = scene
            if scene.run.ended:
                return scene.run
        time.sleep(LOOK_S)
