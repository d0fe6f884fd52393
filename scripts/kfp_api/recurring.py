"""Recurring runs: the schedules of `trainyard schedule`, Argo's CronWorkflows."""

from __future__ import annotations

import json
import re
import secrets
from datetime import UTC, datetime
from typing import Any

from kfp_api import experiments, ids, listing, runs, workflows
from kfp_api.call import Call, Json, text
from kfp_api.errors import invalid, missing
from kfp_api.ids import Id
from trainyard.kube import Kube, KubeError
from trainyard.pipelines import schedules
from trainyard.pipelines.runs.model import EXPERIMENT
from trainyard.pipelines.submit import send

FIELDS = ("recurring_run_id", "display_name", "created_at", "experiment_id", "status", "namespace")
CATCH_UP_S = 86400  # how late the last missed run may begin, unless no_catchup
MOST = 10  # runs of a schedule at once, as on KFP's server
ENABLED, DISABLED = "ENABLED", "DISABLED"


def _json(one: Json) -> Json:
    meta, note = one["metadata"], workflows.note(one["metadata"])
    label = (meta.get("labels") or {}).get(EXPERIMENT, "")
    found = {
        "recurring_run_id": str(Id(meta["namespace"], meta["name"])),
        "display_name": str(note.get("name") or meta["name"]),
        "description": str(note.get("description") or ""),
        "namespace": meta["namespace"],
        "experiment_id": str(Id(meta["namespace"], label)) if label else "",
        "created_at": meta.get("creationTimestamp", ""),
        "updated_at": meta.get("creationTimestamp", ""),
        "max_concurrency": str(note.get("max_concurrency") or 1),
        "no_catchup": not one["spec"].get("startingDeadlineSeconds"),
        "mode": "DISABLE" if one["spec"].get("suspend") else "ENABLE",
        "status": DISABLED if one["spec"].get("suspend") else ENABLED,
        "trigger": _object(note, "trigger")
        or {"cron_schedule": {"cron": "; ".join(one["spec"].get("schedules") or [])}},
        "runtime_config": {"parameters": _object(note, "parameters")},
    }
    if why := schedules.refusal(one):
        found["error"] = {"code": 3, "message": why}
    reference = {key: note[key] for key in ("pipeline_id", "pipeline_version_id") if note.get(key)}
    return found | ({"pipeline_version_reference": reference} if reference else {})


def _object(note: Json, key: str) -> Json:
    """A part of the note: a member may have written anything there."""
    found = note.get(key)
    return found if isinstance(found, dict) else {}


def _find(call: Call) -> tuple[Kube, Json]:
    place = ids.read("recurring run", call.at["id"])
    kube = call.caller.kube(place.team)
    one = kube.find(kube.path(schedules.VERSION, schedules.RESOURCE, place.name))
    if one is None or schedules.going(one):
        raise missing("recurring run", call.at["id"])
    return kube, one


def list_(call: Call) -> Json:
    """GET recurringruns."""

    def of(team: str) -> list[Json]:
        try:
            return [_json(one) for one in schedules.listed(call.caller.kube(team))]
        except KubeError as error:
            if error.status == 404:
                return []
            raise

    wanted, (_, teams) = call.query.get("experiment_id", ""), experiments.chosen(call)
    found = [one for one in call.caller.of_all(of, teams) if not wanted or one["experiment_id"] == wanted]
    shown, total, token = listing.page(found, call.query, FIELDS)
    return {"recurringRuns": shown, "total_size": total, "next_page_token": token}


def create(call: Call) -> Json:
    """POST recurringruns."""
    body = call.json()
    times, trigger = _times(body)
    kube, workflow = runs.prepared(call, body)
    note = workflows.note(workflow["metadata"]) | {"trigger": trigger, "max_concurrency": times.at_most}
    workflow["metadata"]["annotations"].pop(workflows.NOTE)
    begin = re.sub(r"[^a-z0-9]+", "-", str(note["name"]).lower())[:40].strip("-") or "recurring"
    name, paused = f"{begin}-{secrets.token_hex(3)}", body.get("mode") != "ENABLE"
    send.caller.sign(kube, workflow)
    several = times.at_most > 1
    made = schedules.cron_workflow(name, workflow, times, paused=paused or several)
    made["metadata"].setdefault("annotations", {})[workflows.NOTE] = json.dumps(note)
    sent = send.put(kube, made, "recurring run", "create it again")
    if several:  # no run may be due before the limit of all of them is there
        schedules.keep_limit(kube, sent, times.at_most)
        if not paused:
            schedules.suspend(kube, name, False)
            sent["spec"].pop("suspend", None)
    return _json(sent)


def _times(body: Json) -> tuple[schedules.Times, Json]:
    """The times of a body's trigger, and the trigger as it is shown again. Raises RefusalError or UsageError."""
    trigger = body.get("trigger")
    if not isinstance(trigger, dict):
        raise invalid("trigger is missing; pass cron_expression or interval_second")
    given = [(key, trigger[key]) for key in ("cron_schedule", "periodic_schedule") if trigger.get(key)]
    if len(given) != 1 or not isinstance(given[0][1], dict):
        raise invalid("trigger needs either cron_schedule or periodic_schedule")
    kind, chosen = given[0]
    start, stop = (_moment(text(chosen, key, 40)) for key in ("start_time", "end_time"))
    if start and stop and start >= stop:
        raise invalid("end_time is not after start_time")
    late = 0 if body.get("no_catchup") else CATCH_UP_S
    at_most = _number(body.get("max_concurrency", 1), "max_concurrency", MOST)
    if kind == "cron_schedule":
        lines = [_line(text(chosen, "cron", 200, needed=True))]
        return schedules.Times(lines, 0, "UTC", start, stop, late, at_most), trigger
    seconds = _number(chosen.get("interval_second"), "interval_second", 86400)
    if seconds % 60:
        raise invalid(f"interval_second {seconds} is not a whole number of minutes")
    return schedules.Times((), seconds, "UTC", start, stop, late, at_most), trigger


def _line(text_: str) -> str:
    """Argo's line of five fields. KFP's has the second before them."""
    fields = text_.split()
    if len(fields) == 5:  # which KFP's server reads from the second on, and Argo from the minute
        raise invalid(f"cron {text_!r} has five fields; begin with the second, such as '0 {text_.strip()}'")
    if len(fields) == 6:
        if fields[0] not in ("0", "00"):
            raise invalid(f"cron {text_!r} does not begin with second 0; runs begin at whole minutes")
        fields = fields[1:]
    return schedules.checked(" ".join(fields))


def _number(value: Any, what: str, most: int) -> int:
    try:
        found = int(value)
    except (TypeError, ValueError):
        raise invalid(f"{what} is not a number") from None
    if isinstance(value, bool) or not 1 <= found <= most:
        raise invalid(f"{what} {found} is not between 1 and {most}")
    return found


def _moment(text_: str) -> datetime | None:
    try:
        found = datetime.fromisoformat(text_) if text_ else None
        return (found if found.tzinfo else found.replace(tzinfo=UTC)).astimezone(UTC) if found else None
    except (ValueError, OverflowError):
        raise invalid(f"invalid time {text_!r}; write it as 2026-12-24T18:00:00Z") from None


def get(call: Call) -> Json:
    """GET recurringruns/{id}."""
    return _json(_find(call)[1])


def _suspend(call: Call, on: bool) -> Any:
    kube, one = _find(call)
    schedules.suspend(kube, one["metadata"]["name"], on)
    return {}


def enable(call: Call) -> Any:
    """POST recurringruns/{id}:enable."""
    return _suspend(call, False)


def disable(call: Call) -> Any:
    """POST recurringruns/{id}:disable. A run in progress goes on."""
    return _suspend(call, True)


def delete(call: Call) -> Any:
    """DELETE recurringruns/{id}. As on KFP's server, its runs stay."""
    kube, one = _find(call)
    name = one["metadata"]["name"]
    kube.delete(kube.path(schedules.VERSION, schedules.RESOURCE, name), propagation="Orphan")
    kube.delete(kube.path("v1", "configmaps", schedules.limit_of(name)))
    return {}


ROUTES = (
    ("POST", "/recurringruns/{id}:enable", enable),
    ("POST", "/recurringruns/{id}:disable", disable),
    ("GET", "/recurringruns", list_),
    ("POST", "/recurringruns", create),
    ("GET", "/recurringruns/{id}", get),
    ("DELETE", "/recurringruns/{id}", delete),
)
