"""Finds logs of a run in the store, and reads them."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from trainyard.errors import TrainyardError, UsageError
from trainyard.training.kept import names, objects
from trainyard.training.kept.objects import Line

if TYPE_CHECKING:
    from trainyard.training.transfer import Store

SHOWN = 12  # names in a message


class NoLogError(TrainyardError):
    """There is no log where one was looked for; it may be kept elsewhere."""


@dataclass(frozen=True)
class Log:
    """The log of one container of a pod that is gone. `short`: what the pod is in its run, such as worker-1."""

    pod: str
    short: str
    container: str
    lines: list[Line]


def logs(
    store: Store,
    root: str,
    run: str,
    step: str = "",
    *,
    attempt: int | None = None,
    say: Callable[[str], None] = lambda text: None,
) -> Iterator[Log]:
    """What is kept of a run: of a training job the rank that speaks for it, else every pod.

    Args:
        root: the team's place, `bucket/team`.
        run: the run's name, or that of one of its pods.
        step: a rank, a pod or a step of a pipeline.
        attempt: which pod of the same name, from 1; the last one without.
        say: is told what else there is.

    Raises:
        TrainyardError: nothing is kept of it, or the store refuses.
    """
    known = _below(store, f"{root}/{run}")
    found = names.pods(run, known)
    if not found:
        hint = "logs go after a while (charts/logs/README.md); `trainyard runs list` shows the runs that are there"
        raise NoLogError(f"nothing of {run} is kept in s3://{root}/", hint=hint)
    if step:
        wanted = names.chosen(run, found, step)
        if not wanted:
            there = ", ".join(names.rest(run, name) or name for name in found[:SHOWN])
            raise UsageError(f"run {run} kept no log of {step}; there are: {there}", where=f"s3://{root}/")
    elif run in found:
        wanted = [run]
    elif names.speaks(run, found[0]):
        wanted = found[:1]
        if more := ", ".join(names.rest(run, name) for name in found[1 : SHOWN + 1]):
            say(f"this is the log of {names.rest(run, found[0])}; there are also {more}")
    else:
        wanted = found
    for pod in wanted:
        yield from _of_pod(store, root, pod, names.rest(run, pod) or pod, attempt)


def _of_pod(store: Store, root: str, pod: str, short: str, attempt: int | None) -> Iterator[Log]:
    """The containers of the last pod of that name, or of another one; those beside the run's own are left out."""
    tries = sorted((_begun(store, f"{root}/{pod}/{uid}"), uid) for uid in _below(store, f"{root}/{pod}/"))
    if attempt is not None and not 1 <= attempt <= len(tries):
        number = f"{len(tries)} {'try' if len(tries) == 1 else 'tries'}"
        raise TrainyardError(f"{pod} has {number}, not {attempt}")
    uid = tries[(attempt or 0) - 1][1]
    place = f"{root}/{pod}/{uid}"
    for container in names.containers(_below(store, f"{place}/")):
        yield Log(pod, short, container, objects.whole(_read(store, f"{place}/{container}")))


def _below(store: Store, begun: str) -> list[str]:
    return [key.rpartition("/")[2] for key in store.folders(begun)]


def _begun(store: Store, place: str) -> str:
    """When the first line of a pod was written, by the name of its object."""
    return min((name.rpartition("/")[2] for name in store.list(place)), default="")


def _read(store: Store, place: str) -> Iterator[Line]:
    with tempfile.TemporaryDirectory() as folder:
        for name in sorted(store.tree(place, Path(folder))):
            file = Path(folder) / name
            yield from objects.lines(file.read_bytes(), f"{place}/{name}")
            file.unlink()
