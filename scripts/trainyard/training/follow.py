"""Follows a job until it ends: where it waits, what is complained of, and the log of rank 0 as it is written."""

from __future__ import annotations

import re
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import click

from trainyard.errors import TrainyardError
from trainyard.kinds import status
from trainyard.kinds.launcher_log import is_noise
from trainyard.kinds.pods import FETCH
from trainyard.kube import Kube, KubeError
from trainyard.training import watch
from trainyard.training.refusals import refusal
from trainyard.training.watch import Sight, Watcher

Object = dict[str, Any]
LOOK_S = 1.0
DRAIN_S = 10.0
TAIL = 200  # lines of a failed rank's log that are looked through for its error
SHOWN = 5
AWAY_S = 120.0
LOOKED_AT = 4  # failed pods
# What ranks say when another one has gone.
FOLLOWS = re.compile(
    r"Connection (closed|reset) by peer|Connection refused|Broken pipe|ChildFailedError|NCCL (error|communicator)"
)
FRAME = re.compile(r"^(Traceback \(most recent call last\):|\s{2,}(File \".*|.+))$")


@dataclass(frozen=True)
class End:
    """How a job ended: `code` is the failed rank's exit code, 0 for success. `ran`: its command was started at all."""

    succeeded: bool
    code: int
    message: str
    ran: bool


class Log:
    """Prints the log of one container in a thread; a container that starts again is followed again."""

    def __init__(self, kube: Kube) -> None:
        self._kube, self._seen = kube, ("", 0)
        self._thread: threading.Thread | None = None

    @property
    def pod(self) -> str:
        """Whose log was shown; "" before there was one."""
        return self._seen[0]

    def follow(self, pod: Object, container: str) -> None:
        """Follows this pod from its present start on, unless that is done already."""
        wanted = (str(pod["metadata"]["name"]), watch.started(pod, container))
        if not wanted[1] or wanted == self._seen or (self._thread and self._thread.is_alive()):
            return
        self._seen = wanted
        self._thread = threading.Thread(target=self._run, args=(wanted[0], container), daemon=True)
        self._thread.start()

    def drain(self) -> None:
        """Lets the last lines come."""
        if self._thread:
            self._thread.join(DRAIN_S)

    def _run(self, pod: str, container: str) -> None:
        since, broken = "", 0
        while broken < 5:
            try:
                for line in self._kube.logs(pod, container, follow=True, since=since):
                    since = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
                    if is_noise(line.decode(errors="replace")):
                        continue
                    sys.stdout.buffer.write(line + b"\n")
                    sys.stdout.buffer.flush()
                return
            except KubeError as error:
                if error.status == 404:  # the pod is gone
                    return
                broken += 1
                time.sleep(1)
            except (BrokenPipeError, ValueError):  # whoever reads our output has gone
                return


def follow(kube: Kube, manifest: Object, say: Callable[[str], None] | None = None) -> End:
    """Until the job has ended.

    Raises:
        TrainyardError: its pods can never start, in which case it is taken away; or it was deleted meanwhile.
    """
    say = say or (lambda text: click.echo(click.style(text, dim=True), err=True))
    watcher, log, told = Watcher(kube, manifest), Log(kube), set[str]()
    container, place, away, ran = status.container(manifest), "", 0.0, False
    while True:
        try:
            sight = watcher.look()
            away = 0.0
        except KubeError as error:
            away = away or time.monotonic()
            if error.status in (401, 403) or time.monotonic() - away > AWAY_S:
                raise
            time.sleep(LOOK_S)
            continue
        if sight.job is None:
            raise TrainyardError(f"the job {watcher.name} was deleted while it was followed", where=kube.namespace)
        state, message = status.outcome(sight.job)
        fresh = watch.place(sight, watcher.name)
        if state == status.RUNNING and fresh != place:
            place = fresh
            say(place)
        for text in watch.complaints(sight):
            if text not in told and state == status.RUNNING:
                say(f"warning: {text}")
            told.add(text)
        pod = watch.first(sight, manifest)
        if pod:
            log.follow(pod, container)
            ran = ran or bool(log.pod)
        if state != status.RUNNING:
            log.drain()
            return _ended(kube, manifest, sight, log, state, message, ran)
        if not sight.pods and (why := refusal(sight.events)):
            watcher.delete()
            raise TrainyardError(
                f"the job's pods are refused: {why}", where=watcher.name, mend="the job was taken away"
            )
        time.sleep(LOOK_S)


def _ended(kube: Kube, manifest: Object, sight: Sight, log: Log, state: str, message: str, ran: bool) -> End:
    if state == status.SUCCEEDED:
        return End(True, 0, "", ran)
    failed = watch.culprits(sight.pods)
    if not failed:
        return End(False, 1, message, ran)
    told = []
    for pod, code, why in failed[:LOOKED_AT]:
        if why:
            words = f"its command can't be started: {why}"
        else:
            words = last_words(_tail(kube, pod, status.container(manifest)) or _tail(kube, pod, FETCH))
        told.append((not words or bool(FOLLOWS.search(words)), pod, code, words))
    _, pod, code, words = min(told, key=lambda one: one[0])  # the first that isn't another's consequence
    said = f"{pod} ended with code {code}"
    return End(False, code, f"{said}: {words}" if words else f"{said}; {message}", ran)


def _tail(kube: Kube, pod: str, container: str) -> list[str]:
    try:
        return [line.decode(errors="replace") for line in kube.logs(pod, container, tail=TAIL)]
    except KubeError:
        return []


def last_words(lines: list[str]) -> str:
    """The end of a log without the frames of tracebacks: what a person reads first."""
    told = [line.rstrip() for line in lines if line.strip() and not FRAME.match(line.rstrip())]
    errors = [line for line in told if re.match(r"^[\w.]*(Error|Exception|Interrupt|Exit)\b", line)]
    causes = [line for line in errors if not FOLLOWS.search(line)]
    return (causes or errors or [" | ".join(told[-SHOWN:])])[-1]
