"""Finds and reads logs of a run in the store."""

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
    """No log was found; it may be kept elsewhere."""


@dataclass(frozen=True)
class Log:
    """Log of one container of a deleted pod. `short`: the pod's name in its run, such as worker-1."""

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
    """Stored logs of a run: of a training job, the rank that represents it, else of all pods.

    Args:
        root: the team's location, `bucket/team`.
        run: name of the run, or of one of its pods.
        step: rank, pod or pipeline step.
        attempt: number of the pod among those with the same name, from 1; default: the last.
        say: called with a list of other logs.

    Raises:
        TrainyardError: no log of the run is kept, or the store refuses.
    """
    known = _below(store, f"{root}/{run}")
    found = names.pods(run, known)
    if not found:
        hint = "logs are deleted after a while (charts/logs/README.md); list the runs with `trainyard runs list`"
        raise NoLogError(f"no logs of {run} are kept in s3://{root}/", hint=hint)
    if step:
        wanted = names.chosen(run, found, step)
        if not wanted:
            there = ", ".join(names.rest(run, name) or name for name in found[:SHOWN])
            raise UsageError(f"run {run} has no kept log of {step}; available: {there}", where=f"s3://{root}/")
    elif run in found:
        wanted = [run]
    elif names.speaks(run, found[0]):
        wanted = found[:1]
        if more := ", ".join(names.rest(run, name) for name in found[1 : SHOWN + 1]):
            say(f"this is the log of {names.rest(run, found[0])}; others: {more}")
    else:
        wanted = found
    for pod in wanted:
        yield from _of_pod(store, root, pod, names.rest(run, pod) or pod, attempt)


def _of_pod(store: Store, root: str, pod: str, short: str, attempt: int | None) -> Iterator[Log]:
    """The containers of the last pod with that name, or of the given attempt, except helper containers."""
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
    """Time of a pod's first line, from the name of the first object."""
    return min((name.rpartition("/")[2] for name in store.list(place)), default="")


def _read(store: Store, place: str) -> Iterator[Line]:
    with tempfile.TemporaryDirectory() as folder:
        for name in sorted(store.tree(place, Path(folder))):
            file = Path(folder) / name
            yield from objects.lines(file.read_bytes(), f"{place}/{name}")
            file.unlink()
