"""A Workflow as KFP's run."""

from __future__ import annotations

import json
from typing import Any

from kfp_api import ids, workflows
from kfp_api.artifacts import Artifacts
from kfp_api.call import Json
from kfp_api.errors import Code
from kfp_api.ids import Id
from trainyard.pipelines.runs import end, facts
from trainyard.pipelines.runs.model import Run, Step
from trainyard.times import stamp

READ = 50  # artifacts of a run that are read for its metrics
# The states of steps in KFP's words.
STATES = {"running": "RUNNING", "done": "SUCCEEDED", "cached": "SUCCEEDED", "skipped": "SKIPPED", "omitted": "SKIPPED",
          "failed": "FAILED", "error": "FAILED", "stopped": "CANCELED"}  # fmt: skip


def run(found: Run, artifacts: Artifacts | None = None, *, whole: bool = True) -> Json:
    """A run. `whole` adds its tasks and, with the store, its metrics; lists go without."""
    place, header = Id(found.namespace, found.name), workflows.header(found.raw["metadata"])
    made: Json = {
        "run_id": str(place),
        "display_name": header.title,
        "description": str(header.note.get("description") or ""),
        "experiment_id": str(Id(found.namespace, found.experiment)) if found.experiment else "",
        "storage_state": "ARCHIVED" if header.archived else "AVAILABLE",
        "created_at": stamp(found.created),
        "scheduled_at": stamp(found.created),
        "state": state(found),
        "service_account": str(found.raw.get("spec", {}).get("serviceAccountName", "")),
        "runtime_config": {"parameters": parameters(found)},
    }
    if found.ended and found.finished:
        made["finished_at"] = stamp(found.finished)
    if header.schedule:
        made["recurring_run_id"] = str(Id(found.namespace, header.schedule))
    if reference := {key: header.note[key] for key in ("pipeline_id", "pipeline_version_id") if header.note.get(key)}:
        made["pipeline_version_reference"] = reference
    if made["state"] == "FAILED":
        made["error"] = {"code": int(Code.INTERNAL), "message": reason(found)}
    if whole:
        made["state_history"] = _history(found)
        made["run_details"] = {"task_details": [_task(found, step, artifacts) for step in found.steps]}
        if found.ended and (values := metrics(found, artifacts)):
            entries = {name: {"value": value} for name, value in values.items()}
            made["plugins_output"] = {"metrics": {"entries": entries, "state": "PLUGIN_SUCCEEDED"}}
    return made


def state(found: Run) -> str:
    """KFP's state of a run."""
    return "CANCELING" if found.stopping and not found.ended else workflows.STATES.get(found.phase, "PENDING")


def reason(found: Run) -> str:
    """Why a run failed, in one sentence."""
    if found.stopping:
        return "the run was stopped"
    for step in found.failures:
        if step.reason:
            return f"step {step.name}: {step.reason}"
    return found.message or "Argo gives no reason"


def parameters(found: Run) -> Json:
    """The run's parameters: as its caller passed them, else as Argo's texts."""
    noted = workflows.note(found.raw["metadata"]).get("parameters")
    if isinstance(noted, dict):
        return noted
    given = (found.raw.get("spec", {}).get("arguments") or {}).get("parameters") or []
    return {one["name"]: one.get("value") for one in given if end.shown(one["name"])}


def metrics(found: Run, artifacts: Artifacts | None) -> dict[str, float]:
    """Numbers that a run's steps returned or logged, by STEP.NAME."""
    values: dict[str, float] = {}
    for step in found.steps:
        for one in step.outputs.get("parameters") or []:
            if end.shown(one["name"]):
                values |= facts.numbers_of(step.path[-1], {one["name"]: _value(one.get("value"))})
    kept = [(step, place) for step in found.steps for place in artifacts.of(found, step)] if artifacts else []
    for step, place in kept[:READ]:
        kind, logged = artifacts.type_of(found, place) if artifacts else ("", {})
        if kind == facts.METRICS:
            values |= facts.numbers_of(step.path[-1], logged)
    return values


def _value(text: Any) -> Any:
    """The value of Argo's text."""
    try:
        return json.loads(text)
    except (TypeError, ValueError, RecursionError):
        return text


def _history(found: Run) -> list[Json]:
    times = [(found.created, "PENDING"), (found.started, "RUNNING")]
    times += [(found.finished, state(found))] if found.ended else []
    return [{"update_time": stamp(at), "state": word} for at, word in times if at]


def _task(found: Run, step: Step, artifacts: Artifacts | None) -> Json:
    place = Id(found.namespace, found.name)
    made: Json = {
        "run_id": str(place),
        "task_id": step.id,
        "display_name": step.name,
        "state": STATES.get(step.state, "PENDING"),
        "child_tasks": [{"pod_name": node} for node in step.nodes],
    }
    times = {"create_time": step.started, "start_time": step.started, "end_time": step.finished}
    made |= {name: stamp(at) for name, at in times.items() if at}
    if step.state in ("failed", "error"):
        made["error"] = {"code": int(Code.INTERNAL), "message": step.reason or "Argo gives no reason"}
    if kept := artifacts.of(found, step) if artifacts else []:
        made["outputs"] = {one.name: {"artifact_ids": [ids.artifact(place, step.id, one.name)]} for one in kept}
    return made
