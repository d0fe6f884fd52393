"""Runs as data, as YAML, and as tables of many."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from trainyard.pipelines.runs.model import SUBMITTER, Run, Step, now
from trainyard.pipelines.runs.table import span

FORMATS = ("table", "wide", "json", "yaml", "name")
HIDDEN = ("sha-", "at-", "json-")  # parameters that the translation adds


def data(run: Run, *, steps: bool = True) -> dict[str, Any]:
    """One run as plain data."""
    found = {
        "name": run.name,
        "namespace": run.namespace,
        "pipeline": run.pipeline,
        "experiment": run.experiment,
        "state": run.state,
        "message": run.message,
        "created": _time(run.created),
        "started": _time(run.started),
        "finished": _time(run.finished),
        "queue": run.queue,
        "priority": run.priority,
        "submittedBy": run.raw["metadata"].get("annotations", {}).get(SUBMITTER, ""),
    }
    return found | ({"steps": [_step(step) for step in run.steps]} if steps else {})


def listing(runs: Sequence[Run], *, wide: bool = False) -> str:
    """A table of runs."""
    at = now()
    head = ["NAME", "PIPELINE", "STATE", "STEPS", "AGE", "TOOK", "EXPERIMENT"]
    head += ["QUEUE", "PRIORITY", "SUBMITTED BY"] if wide else []
    rows = [head]
    for run in runs:
        ended = sum(step.ended for step in run.steps)
        age = (at - run.created).total_seconds() if run.created else None
        row = [run.name, run.pipeline, run.state, f"{ended}/{len(run.steps)}", span(age), span(run.seconds(at))]
        row += [run.experiment]
        row += [run.queue, run.priority, data(run, steps=False)["submittedBy"]] if wide else []
        rows.append(row)
    return columns(rows)


def columns(rows: Sequence[Sequence[str]]) -> str:
    """Text in columns, each as wide as its longest."""
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    padded = ("  ".join(f"{cell:<{width}}" for cell, width in zip(row, widths, strict=True)) for row in rows)
    return "\n".join(line.rstrip() for line in padded)


def _step(step: Step) -> dict[str, Any]:
    parameters = {one["name"]: one.get("value") for one in step.outputs.get("parameters") or []}

    return {
        "name": step.name,
        "state": step.state,
        "reason": step.reason,
        "tries": step.attempts,
        "started": _time(step.started),
        "finished": _time(step.finished),
        "outputs": {name: value for name, value in parameters.items() if not name.startswith(HIDDEN)},
    }


def _time(at: datetime | None) -> str:
    return at.isoformat().replace("+00:00", "Z") if at else ""
