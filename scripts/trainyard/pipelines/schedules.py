"""Recurring runs: Argo's CronWorkflow around the Workflow that `trainyard submit` would send."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any
from zoneinfo import ZoneInfo

from trainyard.errors import UsageError
from trainyard.kube import Kube, KubeError
from trainyard.names import SUBMITTER
from trainyard.times import span, stamp, when

VERSION, RESOURCE = "argoproj.io/v1alpha1", "cronworkflows"
LONGEST = 52  # of a name: its runs' names add their time
KEPT = 10  # finished runs that are kept, per outcome, until their own time to live is over
NAME = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?")
# Fields of a cron line in order: the allowed range, and the name in messages.
FIELDS = (("minute", 0, 59), ("hour", 0, 23), ("day of month", 1, 31), ("month", 1, 12), ("day of week", 0, 6))
NAMES = {name: number for names, first in (("jan feb mar apr may jun jul aug sep oct nov dec", 1),
                                           ("sun mon tue wed thu fri sat", 0))
         for number, name in enumerate(names.split(), first)}  # fmt: skip
PART = re.compile(r"(?:\*|\?|(\w+)(?:-(\w+))?)(?:/([1-9]\d*))?")
SHORTHANDS = ("@yearly", "@annually", "@monthly", "@weekly", "@daily", "@midnight", "@hourly")

Object = dict[str, Any]


@dataclass(frozen=True)
class Times:
    """The times at which runs begin.

    Args:
        cron: lines of five fields, or nicknames such as `@daily`; either this or `every_s`.
        every_s: seconds from one run to the next, whole minutes, counted from midnight.
        zone: IANA name of the time zone of `cron`.
        start, end: no run begins before `start`, nor from `end` on.
        late_s: a missed run begins up to so many seconds late; 0: never.
        at_most: how many runs may be active at once; 0: any number. With 1, a run that is due meanwhile is left out;
            with more it waits.
        replace: a run that is due ends the previous one.
    """

    cron: Sequence[str] = ()
    every_s: int = 0
    zone: str = "UTC"
    start: datetime | None = None
    end: datetime | None = None
    late_s: int = 0
    at_most: int = 1
    replace: bool = False


def checked(line: str) -> str:
    """A cron line in the form that Argo accepts. Raises UsageError that names the field."""
    text = " ".join(line.split())
    if text in SHORTHANDS:
        return text
    fields = text.split()
    if len(fields) != len(FIELDS):
        hint = "write five fields, such as '0 4 * * *', or @daily"
        raise UsageError(f"invalid schedule {line!r}: it has {len(fields)} fields", hint=hint)
    for field, (what, low, high) in zip(fields, FIELDS, strict=True):
        for part in field.split(","):
            match = PART.fullmatch(part)
            ends = [_number(end) for end in (match.groups()[:2] if match else ()) if end]
            if not match or ends != sorted(ends) or not all(low <= one <= high for one in ends):
                hint = f"write numbers from {low} to {high}, a range, a list, or *"
                raise UsageError(f"invalid schedule {line!r}: invalid {what}: {part}", hint=hint)
    return text


def of_clock(every_s: int) -> list[str]:
    """Cron lines of an interval, from midnight on: Argo restarts its `@every` at each change and every 20 minutes.

    Raises UsageError for an interval that does not divide a day.
    """
    step, hours = every_s // 60, dict[int, list[str]]()
    if 24 * 60 % step:
        hint = "use 30m, 90m, 2h or 1d, or --cron"
        raise UsageError(f"an interval of {step} minutes does not divide a day", hint=hint)
    if 60 % step == 0:
        return ["* * * * *" if step == 1 else "0 * * * *" if step == 60 else f"*/{step} * * * *"]
    for at in range(0, 24 * 60, step):
        hours.setdefault(at % 60, []).append(str(at // 60))
    return [f"{minute} {','.join(found)} * * *" for minute, found in sorted(hours.items())]


def moment(text: str, zone: str) -> datetime:
    """A date, or a date with time, in this zone unless it names an offset. Raises UsageError."""
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        raise UsageError(f"invalid date {text!r}", hint="write it as 2026-12-24 or 2026-12-24T18:00") from None
    return (found if found.tzinfo else found.replace(tzinfo=known_zone(zone))).astimezone(UTC)


def known_zone(name: str) -> ZoneInfo:
    """The zone with that name. Raises UsageError."""
    try:
        return ZoneInfo(name)
    except (KeyError, ValueError, OSError):
        raise UsageError(f"unknown time zone {name!r}", hint="use a name such as Europe/Berlin") from None


def cron_workflow(name: str, workflow: Object, times: Times, *, paused: bool = False) -> Object:
    """The CronWorkflow whose runs are this Workflow. Raises UsageError for an invalid name or invalid times."""
    if len(name) > LONGEST or not NAME.fullmatch(name):
        hint = f"use at most {LONGEST} lower-case letters, digits and hyphens"
        raise UsageError(f"invalid name of a schedule: {name!r}", hint=hint)
    meta, spec = workflow["metadata"], dict(workflow["spec"])
    lines = of_clock(times.every_s) if times.every_s else [checked(line) for line in times.cron]
    if times.at_most > 1:
        semaphore = {"configMapKeyRef": {"name": limit_of(name), "key": "limit"}}
        held = spec.get("synchronization") or {}
        spec["synchronization"] = {**held, "semaphores": [*(held.get("semaphores") or []), semaphore]}
    # Argo reads the expression from a text in JSON, in which double quotes would end it.
    between = [f"now() >= date('{stamp(times.start)}')"] if times.start else []
    between += [f"now() < date('{stamp(times.end)}')"] if times.end else []
    policy = "Replace" if times.replace else "Forbid" if times.at_most == 1 else "Allow"
    marks = {key: meta[key] for key in ("labels", "annotations") if meta.get(key)}
    return {
        "apiVersion": VERSION,
        "kind": "CronWorkflow",
        "metadata": {"name": name, "namespace": meta["namespace"], **{key: dict(one) for key, one in marks.items()}},
        "spec": {
            "schedules": lines,
            "timezone": known_zone(times.zone).key,
            "concurrencyPolicy": policy,
            **({"startingDeadlineSeconds": times.late_s} if times.late_s else {}),
            **({"when": f"{{{{={' && '.join(between)}}}}}"} if between else {}),
            **({"suspend": True} if paused else {}),
            "successfulJobsHistoryLimit": KEPT,
            "failedJobsHistoryLimit": KEPT,
            "workflowMetadata": marks,
            "workflowSpec": spec,
        },
    }


def limit_of(name: str) -> str:
    """The ConfigMap with the number of a schedule's runs that may be active at once."""
    return f"schedule-{name}"


def keep_limit(kube: Kube, made: Object, at_most: int) -> None:
    """Makes that ConfigMap, which is deleted with the schedule."""
    owner = {key: made[key] for key in ("apiVersion", "kind")} | {key: made["metadata"][key] for key in ("name", "uid")}
    meta = {"name": limit_of(made["metadata"]["name"]), "namespace": kube.namespace, "ownerReferences": [owner]}
    kube.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": {"limit": str(at_most)}})


def listed(kube: Kube) -> list[Object]:
    """The schedules of the namespace, by name; without those that are deleted, but for their runs."""
    found = [one for one in kube.list(kube.path(VERSION, RESOURCE)) if not going(one)]
    return sorted(found, key=lambda one: str(one["metadata"]["name"]))


def going(one: Object) -> bool:
    """Whether a schedule is deleted, and waits for the collector of garbage to take its runs from it."""
    return "deletionTimestamp" in one["metadata"]


def suspend(kube: Kube, name: str, on: bool) -> None:
    """Pauses or resumes a schedule; active runs are left alone. Raises TrainyardError if there is none."""
    try:
        kube.patch(kube.path(VERSION, RESOURCE, name), {"spec": {"suspend": on}})
    except KubeError as error:
        if error.status == 404:
            raise missing(kube, name) from None
        raise


def missing(kube: Kube, name: str) -> KubeError:
    """The error for a missing schedule."""
    hint = "list the schedules with `trainyard schedule list`"
    return KubeError(f"no schedule {name} in {kube.namespace}", status=404, hint=hint)


def row(one: Object, at: datetime) -> list[str]:
    """The table row of a schedule at that time."""
    spec, status = one["spec"], one.get("status") or {}
    last = when(status.get("lastScheduledTime"))
    ago = span((at - last).total_seconds()) if last else ""
    who = (one["metadata"].get("annotations") or {}).get(SUBMITTER, "")
    lines = ", ".join(spec.get("schedules") or [spec.get("schedule", "")])
    counts = [len(status.get("active") or []), status.get("succeeded") or 0, status.get("failed") or 0]
    return [one["metadata"]["name"], lines, spec.get("timezone") or "UTC", state(one), ago, *map(str, counts), who]


def state(one: Object) -> str:
    """The schedule's state: paused, stopped, refused or active."""
    if one["spec"].get("suspend"):
        return "paused"
    if (one.get("status") or {}).get("phase") == "Stopped":
        return "stopped"
    return "refused" if refusal(one) else "active"


def refusal(one: Object) -> str:
    """Why its last run did not begin, in the words of Argo or of admission; "" if it did."""
    wanted = ("SpecError", "SubmissionError")
    said = [str(found.get("message")) for found in (one.get("status") or {}).get("conditions") or []
            if found.get("type") in wanted]  # fmt: skip
    return " ".join(said[0].split()) if said else ""


def _number(text: str) -> int:
    return int(text) if text.isdigit() else NAMES.get(text.lower(), -1)
