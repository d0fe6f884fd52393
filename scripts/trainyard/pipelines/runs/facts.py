"""Inputs and results of a pipeline's run, for comparison with others: from its object and its lineage."""

import json
from typing import Any

from trainyard.errors import TrainyardError
from trainyard.observe.comparison import Facts
from trainyard.pipelines.runs import lineage, stored
from trainyard.pipelines.runs.model import Run
from trainyard.pipelines.runs.output import HIDDEN, KIND
from trainyard.times import now
from trainyard.training.facts import SHOWN, digest_of
from trainyard.training.transfer import Store
from trainyard_agent.runs.run_metrics import numbers

METRICS = "system.Metrics"
EMPTY: tuple[Any, ...] = ("", None, [], {})


def of(run: Run, store: Store) -> Facts:
    """The facts of one run; steps without lineage so far are left out."""
    made = lineage.read(json.loads(store.read(f"{place.bucket}/{place.key}")) for place in stored.lineage(run))
    finals, data = dict[str, float](), dict[str, str]()
    for step in made.steps:
        finals |= numbers_of(step.task, {name: one.get("value") for name, one in step.results.items()})
        for one in step.inputs:
            data[f"{step.task}.{one.name}"] = f"sha256 {one.sha256[:SHOWN]}" if one.sha256 else one.uri
    return Facts(
        name=run.name,
        kind=KIND,
        state=run.state,
        seconds=run.seconds(now()),
        parameters=_parameters(run),
        metrics={**finals, **_logged(run, made, store)},
        data=data,
        code=_code(run),
    )


def numbers_of(task: str, values: Any) -> dict[str, float]:
    """The numbers among a step's values, by TASK.NAME."""
    return {f"{task}.{name}": value for name, value in numbers(values).items()}


def _parameters(run: Run) -> dict[str, Any]:
    """The run's parameters."""
    given = (run.raw.get("spec", {}).get("arguments") or {}).get("parameters") or []
    return {
        one["name"]: one.get("value")
        for one in given
        if one.get("value") not in EMPTY and not one["name"].startswith(HIDDEN)
    }


def _logged(run: Run, made: lineage.Lineage, store: Store) -> dict[str, float]:
    """Numbers that steps logged as kfp's Metrics: they are in meta.json next to the artifact."""
    logged = {(step.task, one.name) for step in made.steps for one in step.outputs if one.type == METRICS}
    found: dict[str, float] = {}
    for place in stored.artifacts(run):
        task = place.step.rpartition("/")[2]
        if (task, place.name) not in logged:
            continue
        try:
            meta = json.loads(store.read(f"{place.bucket}/{place.key.rstrip('/')}/meta.json"))
        except (TrainyardError, ValueError):
            continue
        found |= numbers_of(task, meta.get("metadata"))
    return found


def _code(run: Run) -> dict[str, str]:
    """A digest of the image and the code of each step, by step."""
    templates = {one.get("name"): one for one in run.raw.get("spec", {}).get("templates") or []}
    found = {}
    for step in run.steps:
        template = templates.get(step.template) or {}
        container = template.get("container") or template.get("script")
        if container:
            found[step.name] = digest_of(container)
    return found
