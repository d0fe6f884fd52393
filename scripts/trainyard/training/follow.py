"""Follows a job until it ends: its place in the queue, warnings, and the live log of rank 0."""

import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import click

from trainyard.errors import TrainyardError
from trainyard.kinds import status
from trainyard.kinds.launcher_log import is_noise
from trainyard.kube import Kube, KubeError
from trainyard.observe import jobs, pods
from trainyard.observe.jobs import JobSnapshot, Watcher
from trainyard.observe.refusals import refusal

Object = dict[str, Any]
POLL_INTERVAL_S = 1.0
DRAIN_S = 10.0
AWAY_S = 120.0


@dataclass(frozen=True)
class End:
    """Result of a job: `code` is the failed rank's exit code, 0 for success. `ran`: whether its command was started.

    `log`: the lines that lead to the error.
    """

    succeeded: bool
    code: int
    message: str
    ran: bool
    stopped: bool = False
    log: tuple[str, ...] = field(default=(), compare=False)


class Log:
    """Prints the log of one container in a thread; follows a container that restarts again."""

    def __init__(self, kube: Kube) -> None:
        self._kube, self._seen = kube, ("", 0)
        self._thread: threading.Thread | None = None

    @property
    def pod(self) -> str:
        """Name of the pod whose log was shown; "" before the first."""
        return self._seen[0]

    def follow(self, pod: Object, container: str) -> None:
        """Follows this pod's current start, unless that was done already."""
        wanted = (str(pod["metadata"]["name"]), pods.starts(pod, container))
        if not wanted[1] or wanted == self._seen or (self._thread and self._thread.is_alive()):
            return
        self._seen = wanted
        self._thread = threading.Thread(target=self._run, args=(wanted[0], container), daemon=True)
        self._thread.start()

    def drain(self) -> None:
        """Waits for the last lines."""
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
            except (BrokenPipeError, ValueError):  # the reader of our output is gone
                return


def follow(kube: Kube, manifest: Object, say: Callable[[str], None] | None = None, *, take_away: bool = True) -> End:
    """Follows the job until it ends.

    Args:
        say: called with the job's place.
        take_away: whether to delete a job whose pods are rejected for good.

    Raises:
        TrainyardError: its pods can never start, or it was deleted meanwhile.
    """
    say = say or (lambda text: click.echo(click.style(text, dim=True), err=True))
    watcher, log, announced = Watcher(kube, manifest), Log(kube), set[str]()
    place, away, ran = "", 0.0, False
    while True:
        try:
            snapshot = watcher.poll()
            away = 0.0
        except KubeError as error:
            away = away or time.monotonic()
            if error.status in (401, 403) or time.monotonic() - away > AWAY_S:
                raise
            time.sleep(POLL_INTERVAL_S)
            continue
        if snapshot.job is None:
            raise TrainyardError(f"the job {watcher.name} was deleted while it was followed", where=kube.namespace)
        state, message = status.outcome(snapshot.job)
        fresh = jobs.place(snapshot, watcher.name)
        if state == status.RUNNING and fresh != place:
            place = fresh
            say(place)
        for text in jobs.warnings(snapshot):
            if text not in announced and state == status.RUNNING:
                say(f"warning: {text}")
            announced.add(text)
        pod = jobs.first(snapshot, manifest)
        if pod:
            log.follow(pod, jobs.container(manifest, pod))
            ran = ran or bool(log.pod)
        if state != status.RUNNING:
            log.drain()
            if state == status.STOPPED:  # later calls can't tell whether it has run
                return End(False, 1, "it was stopped", ran or not place, stopped=True)
            return _ended(kube, snapshot, state, message, ran)
        if not snapshot.pods and (why := refusal(snapshot.events)):
            hint = f"delete it: trainyard runs delete -n {kube.namespace} {watcher.name} --force"
            if take_away:
                watcher.delete()
                hint = "the job was deleted"
            raise TrainyardError(f"the job's pods are refused: {why}", where=watcher.name, hint=hint)
        time.sleep(POLL_INTERVAL_S)


def _ended(kube: Kube, snapshot: JobSnapshot, state: str, message: str, ran: bool) -> End:
    if state == status.SUCCEEDED:
        return End(True, 0, "", ran)
    seen = jobs.blamed(kube, snapshot)
    if seen is None:
        return End(False, 1, message, ran)
    text = seen.sentence if seen.words else f"{seen.sentence}; {message}"
    return End(False, seen.failure.code, text, ran, log=tuple(seen.end_of_log))
