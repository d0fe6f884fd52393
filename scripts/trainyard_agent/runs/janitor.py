"""Removes the claims of finished runs: those with the label trainyard.io/run and a time to live. Also removes unused
results of steps, see step_results.py.

The run may be a job of any kind with that name in the claim's namespace. The time counts from its end; if that is
unknown, because the run is gone or its kind doesn't record it, from the janitor's first look, noted on the claim.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from trainyard_agent.api import MALFORMED, Api, ApiError, found
from trainyard_agent.runs import step_results
from trainyard_agent.say import PlatformError, say

RUN = "trainyard.io/run"
TTL = "trainyard.io/ttl-seconds-after-finished"
ENDED = "trainyard.io/run-ended"
MANAGER = "trainyard-janitor"

VOLCANO_ENDS = {"Completed", "Failed", "Aborted", "Terminated"}
ARGO_ENDS = {"Succeeded", "Failed", "Error"}


@dataclass(frozen=True)
class Run:
    """The state of a run; `ended` is None while it runs, or if its kind doesn't record when it ended."""

    finished: bool
    ended: datetime | None = None


def read(obj: dict[str, Any]) -> Run:
    """Read the state of a job of any kind."""
    status = obj.get("status") or {}
    state = status.get("state")
    if isinstance(state, dict) and state.get("phase") in VOLCANO_ENDS:
        return Run(True, _time(state.get("lastTransitionTime")))
    if status.get("phase") in ARGO_ENDS:
        return Run(True, _time(status.get("finishedAt")))
    for condition in status.get("conditions") or []:
        if condition.get("status") == "True" and condition.get("type") in ("Succeeded", "Complete", "Failed"):
            return Run(True, _time(status.get("completionTime") or condition.get("lastTransitionTime")))
    return Run(False)


def _time(text: Any) -> datetime | None:
    return datetime.fromisoformat(text) if text else None


def find(api: Api, namespace: str, name: str, kinds: Sequence[str]) -> list[Run]:
    """Every job of that name of any of the kinds (`group/version/plural`); [] if there is none."""
    split = (kind.rpartition("/") for kind in kinds)
    there = (found(api, f"/apis/{group}/namespaces/{namespace}/{plural}/{name}") for group, _, plural in split)
    return [read(obj) for obj in there if obj is not None]


def in_use(pods: list[dict[str, Any]]) -> set[str]:
    """Claims that unfinished pods use."""
    return {
        volume["persistentVolumeClaim"]["claimName"]
        for pod in pods
        if (pod.get("status") or {}).get("phase") not in ("Succeeded", "Failed")
        for volume in pod["spec"].get("volumes") or []
        if volume.get("persistentVolumeClaim")
    }


class Janitor:
    """One look at the teams' claims."""

    def __init__(self, api: Api, kinds: Sequence[str], now: Callable[[], datetime] = lambda: datetime.now(UTC)) -> None:
        self.api, self.kinds, self.now = api, kinds, now

    def look(self, namespace: str) -> None:
        """Remove what is due in one namespace."""
        path = f"/api/v1/namespaces/{namespace}/persistentvolumeclaims"
        claims = self.api.get(path, {"labelSelector": RUN}).get("items", [])
        claims = [claim for claim in claims if not claim["metadata"].get("deletionTimestamp")]
        if not claims:
            return
        used = in_use(self.api.get(f"/api/v1/namespaces/{namespace}/pods").get("items", []))
        for claim in claims:
            name = claim["metadata"]["name"]
            try:
                self._judge(f"{path}/{name}", namespace, claim, used)
            except MALFORMED as error:  # one team's invalid object must not stop all others
                say(f"claim {namespace}/{name} stays, it or its run can't be read: {type(error).__name__}: {error}")

    def _judge(self, path: str, namespace: str, claim: dict[str, Any], used: set[str]) -> None:
        meta = claim["metadata"]
        what, run = f"claim {namespace}/{meta['name']}", meta["labels"][RUN]
        notes = meta.get("annotations") or {}
        if TTL not in notes:
            return
        if not notes[TTL].isdecimal():
            say(f"{what}: {TTL} is {notes[TTL]!r}, not a number of seconds; it stays")
            return
        jobs = find(self.api, namespace, run, self.kinds)
        if meta["name"] in used or any(not job.finished for job in jobs):
            if ENDED in notes:  # it runs again
                self._note(path, meta, None)
            return
        ends = [job.ended for job in jobs]
        ended = max(end for end in ends if end) if ends and all(ends) else None
        if ended is None:
            if ENDED not in notes:
                self._note(path, meta, self.now().isoformat(timespec="seconds"))
                say(f"{what}: run {run} is {'finished' if jobs else 'not there'}, its time begins")
                return
            ended = datetime.fromisoformat(notes[ENDED])
        age = (self.now() - ended).total_seconds()
        if age >= int(notes[TTL]):
            self._remove(path, meta)
            say(f"{what} removed: run {run} ended {age:.0f} s ago")

    def _note(self, path: str, meta: dict[str, Any], value: str | None) -> None:
        body = {"metadata": {"annotations": {ENDED: value}, "resourceVersion": meta["resourceVersion"]}}
        self.api.merge(path, body, manager=MANAGER)

    def _remove(self, path: str, meta: dict[str, Any]) -> None:
        """Delete only the claim that was read; if a pod has begun to use it since, Kubernetes delays the deletion."""
        only = {"uid": meta["uid"], "resourceVersion": meta["resourceVersion"]}
        options = {"apiVersion": "v1", "kind": "DeleteOptions", "preconditions": only}
        self.api.call("DELETE", path, options)


def run(contract_file: str, kinds: str, results: timedelta | None = None) -> int:
    """One look at every team of the contract. An error with one team doesn't stop the others.

    Args:
        kinds: kinds that a run can have, as comma-separated `group/version/plural`.
        results: how long an unused result of a step stays; None keeps all.

    Raises PlatformError.
    """
    teams = [team["name"] for team in json.loads(Path(contract_file).read_text()).get("teams") or []]
    api = Api()
    janitor, failed, said = Janitor(api, kinds.split(",")), [], []
    for team in teams:
        try:
            janitor.look(team)
        except ApiError as error:
            if error.status == 409:  # someone changed the claim meanwhile: try next time
                continue
            failed.append(f"{team} ({error.message})")
        except MALFORMED as error:
            failed.append(f"{team} (something there can't be read: {type(error).__name__}: {error})")
    if failed:
        said.append(f"claims were not looked at in {', '.join(failed)}")
    if results is not None:
        try:
            step_results.clean(api, api.namespace, janitor.now() - results)
        except PlatformError as error:
            said.append(str(error))
    if said:
        raise PlatformError("; ".join(said))
    return 0
