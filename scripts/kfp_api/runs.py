"""Runs: Workflows, made by the code of `trainyard submit`; and their artifacts."""

from __future__ import annotations

import json
from typing import Any

from kfp_api import experiments, ids, listing, pipelines, retrying, shown, workflows
from kfp_api.call import Call, Json, text
from kfp_api.errors import Code, RefusalError, compiled, invalid, missing
from kfp_api.ids import Id
from trainyard.kube import Kube
from trainyard.pipelines.ir.model import Pipeline
from trainyard.pipelines.runs import actions
from trainyard.pipelines.submit import prepare, send
from trainyard.pipelines.translate.settings import Settings

FIELDS = ("run_id", "display_name", "created_at", "experiment_id", "state", "storage_state", "recurring_run_id")
LONGEST_NAME, LONGEST_TEXT = 256, 2048
ROWS, LONGEST_ROW = 2000, 8000  # runs that are held as lists show them, and characters of each
NOTED = 16 << 10  # characters of parameters that are noted; longer ones are in the Workflow's own


def list_(call: Call) -> Json:
    """GET runs: first the metadata of all, then the runs of the page."""
    label, teams = experiments.chosen(call)

    def of(team: str) -> list[Json]:
        found = workflows.headers(call.caller.kube(team), experiment=label)
        return [_row(one) for one in found]

    found = call.caller.of_all(of, teams)
    rows, total, token = listing.page(found, call.query, FIELDS)

    def whole(row: Json) -> Json | None:
        if held := call.service.rows.get(row["version"]):  # the caller may list this team: the list above shows it
            return held
        at = ids.read("run", row["run_id"])
        run = workflows.find(call.caller.kube(at.team), at.name)
        if run is None:
            return None  # deleted meanwhile
        made = shown.run(run, whole=False)
        if len(call.service.rows) >= ROWS:
            call.service.rows.clear()
        if len(str(made)) <= LONGEST_ROW:
            call.service.rows[workflows.version(run.raw["metadata"])] = made
        return made

    made = [one for one in call.caller.each(whole, rows) if one]
    return {"runs": made, "total_size": total, "next_page_token": token}


def _row(one: workflows.Header) -> Json:
    return {
        "version": one.version,
        "run_id": one.id,
        "display_name": one.title,
        "created_at": one.created,
        "experiment_id": str(Id(one.team, one.experiment)) if one.experiment else "",
        "state": one.state,
        "storage_state": "ARCHIVED" if one.archived else "AVAILABLE",
        "recurring_run_id": str(Id(one.team, one.schedule)) if one.schedule else "",
    }


def create(call: Call) -> Json:
    """POST runs. The body names no namespace: the experiment's id does, or the pipeline's."""
    body = call.json()
    kube, made = prepared(call, body)
    sent = send.create(kube, made)
    return shown.run(workflows.read(sent))


def prepared(call: Call, body: Json) -> tuple[Kube, Json]:
    """The Workflow that a body of a run or of a recurring run asks for: compiled, checked, translated; not sent."""
    pipeline, own, reference = pipelines.of_run(call, body)
    experiment = text(body, "experiment_id", 400)
    if experiment:
        place = ids.read("experiment", experiment, ids.LABEL)
        if experiments.found(call, experiment)["storage_state"] == experiments.ARCHIVED:
            raise RefusalError(
                Code.FAILED_PRECONDITION, "the experiment is archived; unarchive it, or choose another one"
            )
    else:
        place = Id(own or call.caller.home(text(body, "namespace", 63)), "default")
    config = body.get("runtime_config") or {}
    if not isinstance(config, dict) or not isinstance(config.get("parameters") or {}, dict):
        raise invalid("runtime_config.parameters is not an object")
    given = config.get("parameters") or {}
    _refuse(call, body, config)
    contract = call.service.contract()
    settings = Settings.of(contract, place.team, experiment=place.name)
    with compiled():
        made = prepare.of_pipeline(pipeline, given, contract, settings).workflow
    note = {"name": text(body, "display_name", LONGEST_NAME) or pipeline.name,
            "description": text(body, "description", LONGEST_TEXT), **reference}  # fmt: skip
    if len(json.dumps(given)) <= NOTED:
        note["parameters"] = _all(pipeline, given)
    made["metadata"].setdefault("annotations", {})[workflows.NOTE] = json.dumps(note)
    return call.caller.kube(place.team), made


def _all(pipeline: Pipeline, given: Json) -> Json:
    """The given parameters and the defaults of the others."""
    defaults = {name: one.default for name, one in pipeline.inputs.parameters.items() if one.default is not None}
    return {**defaults, **given}


def _refuse(call: Call, body: Json, config: Json) -> None:
    account = call.service.contract().service_account
    if body.get("service_account") not in (None, "", account):
        raise invalid(f"service_account can't be chosen: steps run as {account}; leave it out")
    if config.get("pipeline_root"):
        raise invalid("pipeline_root can't be chosen: artifacts go to the team's own folder of the store; leave it out")


def get(call: Call) -> Json:
    """GET runs/{id}."""
    place = ids.read("run", call.at["id"])
    return shown.run(workflows.fetch(call.caller.kube(place.team), place.name), call.service.artifacts)


def _archived(call: Call, on: bool) -> Any:
    place = ids.read("run", call.at["id"])
    kube = call.caller.kube(place.team)
    workflows.fetch(kube, place.name)
    workflows.archive(kube, place.name, on)
    return {}


def archive(call: Call) -> Any:
    """POST runs/{id}:archive."""
    return _archived(call, True)


def unarchive(call: Call) -> Any:
    """POST runs/{id}:unarchive."""
    return _archived(call, False)


def terminate(call: Call) -> Any:
    """POST runs/{id}:terminate."""
    place = ids.read("run", call.at["id"])
    kube = call.caller.kube(place.team)
    workflows.fetch(kube, place.name)
    if not actions.stop(kube, place.name):
        raise RefusalError(Code.FAILED_PRECONDITION, f"run {place} has already ended")
    return {}


def retry(call: Call) -> Any:
    """POST runs/{id}:retry."""
    retrying.retry(call.caller, call.at["id"])
    return {}


def delete(call: Call) -> Any:
    """DELETE runs/{id}. Its artifacts and logs stay in the store."""
    place = ids.read("run", call.at["id"])
    if not actions.delete(call.caller.kube(place.team), place.name):
        raise missing("run", call.at["id"])
    return {}


def artifact(call: Call) -> Json:
    """GET artifacts/{id}: what kfp noted about an artifact of a run."""
    place, step, name = ids.read_artifact(call.at["id"])
    run, store = workflows.fetch(call.caller.kube(place.team), place.name), call.service.artifacts
    found = store.find(run, step, name) if store else None
    if store is None or found is None:
        raise missing("artifact", call.at["id"])
    kind, metadata = store.type_of(run, found)
    return {
        "artifact_id": call.at["id"],
        "name": name,
        "artifact_type": kind,
        "uri": found.uri,
        "metadata": metadata,
        "namespace": place.team,
        "created_at": shown.stamp(run.finished or run.created),
        "run_id": str(place),
    }


ROUTES = (
    ("POST", "/runs/{id}:archive", archive),
    ("POST", "/runs/{id}:unarchive", unarchive),
    ("POST", "/runs/{id}:terminate", terminate),
    ("POST", "/runs/{id}:retry", retry),
    ("GET", "/runs", list_),
    ("POST", "/runs", create),
    ("GET", "/runs/{id}", get),
    ("DELETE", "/runs/{id}", delete),
    ("GET", "/artifacts/{id}", artifact),
)
