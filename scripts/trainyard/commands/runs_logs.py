"""`trainyard runs logs`: from pods as long as they exist, afterwards from the store."""

from __future__ import annotations

import sys
from collections import deque
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from copy import copy
from typing import TYPE_CHECKING

import click

from trainyard.commands.common import say
from trainyard.commands.run_names import complete
from trainyard.errors import TrainyardError, UsageError
from trainyard.kube import Access, KubeError, options
from trainyard.terminal import harmless

if TYPE_CHECKING:
    from trainyard.contract import Contract
    from trainyard.kube import Kube
    from trainyard.pipelines.runs.model import Run, Step
    from trainyard.training.kept import Log
    from trainyard.training.transfer import Store


@click.command()
@click.argument("run", metavar="NAME", shell_complete=complete)
@click.argument("step", required=False)
@click.option("-f", "--follow", is_flag=True, help="Wait for the step to start, and follow it until it ends.")
@click.option("--tail", type=click.IntRange(min=0), help="Number of last lines to print.")
@click.option("--attempt", type=click.IntRange(min=1), help="Attempt whose log to print. Default: the last.")
@options
def logs(run: str, step: str | None, follow: bool, tail: int | None, attempt: int | None, access: Access) -> None:
    """Print the log of a run, or of one step. Without STEP, prints the logs of all steps that ran, each line with the
    step's name. For a training job, prints the log of the main rank, or of STEP, such as worker-1. Logs of deleted pods
    come from the store, if the site keeps them: then NAME may also be a deleted run or a pod; --attempt selects one of
    several pods of the same name.
    """
    from trainyard.commands.run_names import named, split
    from trainyard.observe.jobs import MissingError
    from trainyard.training.kept import NoLogError

    kube = access.connect()
    with ExitStack() as opened:
        kept = StoredLogs(kube, opened, attempt)
        try:
            this = named(kube, run)
        except (KubeError, MissingError) as error:
            if follow or (isinstance(error, KubeError) and error.status != 404):
                raise
            _put(kept.read(split(run)[1], step or "", error), tail)
            return
        if this.job:
            from trainyard.training import actions

            try:
                if attempt:
                    raise NoLogError(
                        "training jobs do not support --attempt", hint="remove it to get the log of the last start"
                    )
                for line in actions.lines(kube, this.job, step or "", follow=follow, tail=tail, say=say):
                    _write(line)
            except NoLogError as error:
                _put(kept.read(this.name, step or "", error), tail)
            return
        _of_pipeline(kube, kept, this.name, step, follow, tail, attempt)


class StoredLogs:
    """Logs of pods that are gone. The store is opened when it is asked for the first time, and once."""

    def __init__(self, kube: Kube, opened: ExitStack, attempt: int | None) -> None:
        self._kube, self._opened, self._attempt = kube, opened, attempt
        self._contract: Contract | None = None
        self._store: Store | None = None

    def read(self, run: str, step: str, otherwise: TrainyardError, attempt: int | None = None) -> list[Log]:
        """What is kept of a run, or of one pod or step of it.

        Args:
            otherwise: why the pods don't provide the log.

        Raises:
            TrainyardError: `otherwise` where the site keeps no logs; else that nothing is kept of it, either.
        """
        from trainyard import contract
        from trainyard.training import kept

        if self._contract is None:
            try:
                self._contract = contract.live(self._kube)
            except TrainyardError:
                raise otherwise from None
        if not self._contract.log_bucket:
            raise otherwise
        if self._store is None:
            say(f"{otherwise.what}; searching the store")
            self._store = self._opened.enter_context(_reached(self._kube, self._contract))
        root = f"{self._contract.log_bucket}/{self._kube.namespace}"
        return list(kept.logs(self._store, root, run, step, attempt=attempt or self._attempt, say=say))


@contextmanager
def _reached(kube: Kube, found: Contract) -> Iterator[Store]:
    """The store with the team's keys, or, for who looks into another namespace, with the platform's own."""
    from trainyard.kinds import TeamConfig
    from trainyard.pipelines.runs import stored
    from trainyard.training.transfer import open_store

    if kube.namespace in found.teams:
        with stored.reached(kube) as store:
            yield store
        return
    inside = copy(kube)
    inside.namespace = found.namespace
    with open_store(inside, TeamConfig.of_platform(found)) as store:
        yield store


def _of_pipeline(
    kube: Kube, kept: StoredLogs, name: str, step: str | None, follow: bool, tail: int | None, attempt: int | None
) -> None:
    from trainyard.pipelines.runs import logs as reading
    from trainyard.pipelines.runs import nodes, snapshot
    from trainyard.training.kept import NoLogError

    found = nodes.run(snapshot.fetch(kube, name))
    if step is None:
        if follow or attempt:
            raise UsageError("--follow and --attempt need a STEP", hint=f"list them with `trainyard runs show {name}`")
        for each in found.steps:
            if each.nodes or each.state == "cached":
                _one_of_all(kube, kept, found, each, tail)
        return
    chosen = found.find(step)
    try:
        for line in reading.lines(kube, found, chosen, follow=follow, tail=tail, attempt=attempt, say=say):
            _write(line)
    except NoLogError as error:
        if follow or not chosen.nodes:
            raise
        _put(kept.read(name, _pod(chosen, attempt), error, attempt=1), tail)


def _one_of_all(kube: Kube, kept: StoredLogs, run: Run, step: Step, tail: int | None) -> None:
    """A step's log, each line with its name; a missing log is reported, and the other steps still follow."""
    from trainyard.pipelines.runs import logs as reading
    from trainyard.training.kept import NoLogError

    try:
        try:
            lines: Iterable[bytes] = list(reading.lines(kube, run, step, tail=tail))
        except NoLogError as error:
            if not step.nodes:
                raise
            lines = deque((line for log in kept.read(run.name, _pod(step), error) for line in _own(log)), maxlen=tail)
        for line in lines:
            _write(f"{step.name}: ".encode() + line)
    except TrainyardError as error:
        click.echo(str(error), err=True)


def _pod(step: Step, attempt: int | None = None) -> str:
    """What Argo calls the pod of a step's try after the run's name: its template, and the number of its node."""
    return f"{step.template}-{step.nodes[(attempt or 0) - 1].rpartition('-')[2]}"


def _put(found: list[Log], tail: int | None) -> None:
    """Lines of logs; with their pods' names before them where there are several."""
    pods = len({log.pod for log in found})
    for log in found:
        beside = sum(one.pod == log.pod for one in found) > 1
        name = "/".join([log.short] * (pods > 1) + [log.container] * beside)
        for line in deque(_own(log), maxlen=tail):
            _write(f"{name}: ".encode() * bool(name) + line)


def _own(log: Log) -> Iterator[bytes]:
    """Without what Argo, kfp and MPI's launcher write into it."""
    from trainyard.kinds.launcher_log import is_noise
    from trainyard.pipelines.runs import logs as reading

    texts = (line.text.encode(errors="surrogateescape") for line in log.lines if not is_noise(line.text))
    return reading.own(texts) if log.container == reading.CONTAINER else texts


def _write(line: bytes) -> None:
    """Into a file or a program every byte as it is."""
    sys.stdout.buffer.write((harmless(line) if sys.stdout.isatty() else line) + b"\n")
    sys.stdout.buffer.flush()
