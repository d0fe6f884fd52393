"""Runs of pipelines as data, and as rows of a list."""

from typing import Any

from trainyard.names import SUBMITTER
from trainyard.observe.listing import Row
from trainyard.pipelines.runs.model import Run, Step
from trainyard.times import now, stamp

KIND = "pipeline"
HIDDEN = ("sha-", "at-", "json-")  # parameters that the translation adds


def data(run: Run, *, steps: bool = True) -> dict[str, Any]:
    """The data of one run, for JSON."""
    found = {
        "name": run.name,
        "kind": KIND,
        "namespace": run.namespace,
        "pipeline": run.pipeline,
        "experiment": run.experiment,
        "state": run.state,
        "message": run.message,
        "created": stamp(run.created),
        "started": stamp(run.started),
        "finished": stamp(run.finished),
        "queue": run.queue,
        "priority": run.priority,
        "submittedBy": _submitter(run),
    }
    return found | ({"steps": [_step(step) for step in run.steps]} if steps else {})


def row(run: Run, note: str = "") -> Row:
    """A run's row in a list; `note` has details from the cluster."""
    ended = sum(step.ended for step in run.steps)
    failed = "" if run.succeeded else next((f"{step.name}: {step.reason}" for step in run.failures), "")
    return Row(
        name=run.name,
        kind=KIND,
        state=run.state,
        done=f"{ended}/{len(run.steps)}",
        created=run.created,
        seconds=run.seconds(now()),
        note=(failed or run.message) if run.ended else note or failed,
        pipeline=run.pipeline,
        experiment=run.experiment,
        queue=run.queue,
        priority=run.priority,
        submitter=_submitter(run),
    )


def _step(step: Step) -> dict[str, Any]:
    parameters = {one["name"]: one.get("value") for one in step.outputs.get("parameters") or []}

    return {
        "name": step.name,
        "state": step.state,
        "reason": step.reason,
        "tries": step.attempts,
        "started": stamp(step.started),
        "finished": stamp(step.finished),
        "outputs": {name: value for name, value in parameters.items() if not name.startswith(HIDDEN)},
    }


def _submitter(run: Run) -> str:
    return str((run.raw["metadata"].get("annotations") or {}).get(SUBMITTER, ""))
