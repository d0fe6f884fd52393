"""`trainyard runs list`: runs of pipelines and training jobs of a team, newest first."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from trainyard.errors import TrainyardError
from trainyard.observe import jobs as observed
from trainyard.observe.listing import Row
from trainyard.pipelines.runs import actions, output
from trainyard.pipelines.runs.snapshot import Observer
from trainyard.training import report

if TYPE_CHECKING:
    from trainyard.kube import Kube
    from trainyard.pipelines.runs.model import Run

Job = dict[str, Any]


def found(kube: Kube, *, experiment: str = "", pipeline: str = "") -> tuple[list[Run], list[Job]]:
    """Runs and jobs; jobs only where nothing is asked for that only runs of pipelines have."""
    if experiment or pipeline:
        return actions.listed(kube, experiment=experiment, pipeline=pipeline), []
    try:
        runs = actions.listed(kube)
    except actions.NoPipelinesError:
        runs = []
    return runs, observed.listed(kube)


def rows(kube: Kube, runs: list[Run], jobs: list[Job]) -> list[Row]:
    """A row for each, with why it waits; one snapshot of the namespace serves all."""
    around = observed.around(kube)
    observer = Observer(kube)
    made = [output.row(run, "" if run.ended else observer.snapshot(run, around).waits) for run in runs]
    made += [report.row(job, around) for job in jobs]
    return sorted(made, key=lambda row: row.created.timestamp() if row.created else 0, reverse=True)


def data(kube: Kube, runs: list[Run], jobs: list[Job]) -> list[dict[str, Any]]:
    """The same as plain data."""
    around = observed.around(kube) if jobs else observed.NamespaceSnapshot()
    made = [output.data(run, steps=False) for run in runs]
    made += [report.data(observed.snapshot_of(around, job, job["metadata"]["name"]), whole=False) for job in jobs]
    return sorted(made, key=lambda one: str(one["created"]), reverse=True)


def of(runs: list[Run], jobs: list[Job]) -> list[str]:
    """Their names, newest first; whole ones where several have the same."""
    known = [(str(run.created), run.name, f"{output.KIND}/{run.name}") for run in runs]
    for job in jobs:
        created = str(job["metadata"].get("creationTimestamp", "")).replace("T", " ").replace("Z", "+00:00")
        known.append((created, job["metadata"]["name"], report.full_name(job)))
    known.sort(key=lambda one: one[0], reverse=True)
    plain = [name for _, name, _ in known]
    return [full if plain.count(name) > 1 else name for _, name, full in known]


def names(kube: Kube, *, jobs: bool = True) -> list[str]:
    """Names of runs, and of training jobs."""
    runs: list[Run] = []
    try:
        runs = actions.listed(kube)
    except TrainyardError:
        if not jobs:
            raise
    return of(runs, observed.listed(kube) if jobs else [])
