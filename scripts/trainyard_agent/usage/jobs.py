"""Publishes jobs' usage of their requests for `trainyard rightsize`, which can't query Prometheus.

ConfigMap `trainyard-usage` in each team's namespace has the team's jobs, in the release's namespace the platform's
own workloads. It belongs to the Role that allows writing it, and is deleted with it. Members may write to their
namespace's ConfigMaps, so its content is treated as notes of earlier rounds, and ignored if it isn't ours.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, datetime
from functools import partial
from typing import Any

from trainyard_agent import rounds
from trainyard_agent.api import Api, ApiError
from trainyard_agent.say import PlatformError, say
from trainyard_agent.usage.figures import Figures, job_of, role_of, workload_of
from trainyard_agent.usage.notes import COMPONENT, Notes, read
from trainyard_agent.usage.prometheus import Prometheus

NAME, KEY, MANAGER = "trainyard-usage", "usage.json", "trainyard-usage"
ROLE = "/apis/rbac.authorization.k8s.io/v1/namespaces/{namespace}/roles/trainyard-usage"
LONGEST_S = 24 * 3600.0  # of a run that is measured, and of a gap between rounds that is caught up on
GROWN = 1.1  # a running job is measured again when its run has become that much longer
PLATFORM_S = 1800.0  # between two measurements of the platform's own pods
ANEW = 15  # rounds after which notes are written even if nothing changed

PODS = "max by (namespace, pod, team, job, kind) (max_over_time(trainyard_pod_job[{window:.0f}s]))"
BEGUN = "min by (namespace, pod) (min_over_time(kube_pod_start_time[{window:.0f}s]))"
GOING = 'max by (namespace, pod) (kube_pod_status_phase{phase=~"Pending|Running"}) == 1'

POD = re.compile(r"[a-z0-9][a-z0-9.-]*")  # names that Kubernetes allows for pods

Object = dict[str, Any]


class Usage:
    """The published notes; `look` measures what ran since, and publishes it."""

    def __init__(self, api: Api, figures: Figures, now: Callable[[], datetime] = lambda: datetime.now(UTC)) -> None:
        self.api, self.figures, self.now = api, figures, now
        self._notes: dict[str, Notes] = {}
        self._roles: dict[str, str] = {}  # uids of the Roles
        self._written: dict[str, str] = {}
        self._looked_at = self._platform_at = 0.0
        self._rounds = 0

    def look(self, contract: Object, period: float) -> None:
        """One round.

        Raises:
            PrometheusError: nothing was measured.
            PlatformError: some namespaces' notes could not be published; the text names them.
        """
        at = self.now().timestamp()
        teams = [str(team["name"]) for team in contract.get("teams") or []]
        failed = [reason for name in [*teams, self.api.namespace] if (reason := self._learn(name))]
        known = [team for team in teams if team in self._notes]
        for team, jobs in self._active(known, at, period).items():
            self._team(team, jobs, at)
        self._looked_at = at
        if self.api.namespace in self._notes and at - self._platform_at >= PLATFORM_S:
            self._platform(at)
        if self._rounds % ANEW == 0:
            self._written.clear()
        self._rounds += 1
        for name in [*known, self.api.namespace]:
            if name in self._notes and (reason := self._publish(name, at, period)):
                failed.append(reason)
        for name in set(self._notes) - {*teams, self.api.namespace}:
            del self._notes[name]  # a team that is gone
        if failed:
            raise PlatformError(f"not published: {', '.join(failed)}")

    def _learn(self, namespace: str) -> str:
        """Reads the published notes once; "" or why they can't be read."""
        if namespace in self._notes:
            return ""
        try:
            role = self.api.get(ROLE.format(namespace=namespace))
            self._roles[namespace] = str(role["metadata"]["uid"])
            found = self.api.get(self._path(namespace))
        except ApiError as error:
            if error.status != 404 or namespace not in self._roles:
                return f"{namespace}/{NAME} ({error.message})"
            found = {}
        self._notes[namespace] = read(str((found.get("data") or {}).get(KEY, "")))
        return ""

    def _active(self, teams: list[str], at: float, period: float) -> dict[str, dict[str, Object]]:
        """Jobs that ran since the last round, by team and name: `kind`, `pods`, `begin` and whether they still run."""
        before = self._looked_at or min((self._notes[team].at for team in teams if self._notes[team].at), default=at)
        window = min(max(2 * period, at - before + 2 * period), LONGEST_S)
        ask = self.figures.prometheus.vector
        starts = {_pod(labels): value for labels, value in ask(BEGUN.format(window=window), at)}
        going = {_pod(labels) for labels, _ in ask(GOING, at)}
        found: dict[str, dict[str, Object]] = {team: {} for team in teams}
        for labels, _ in ask(PODS.format(window=window), at):
            pod, team, job = _pod(labels), labels.get("namespace", ""), labels.get("job", "")
            kind = labels.get("kind", "")
            if team not in found or not job or pod not in starts:
                continue
            if not (POD.fullmatch(pod[1]) and f"{job}{kind}".isprintable()):
                continue  # invalid names go into no query, and into no note
            new = {"kind": kind, "pods": [], "begin": at, "going": False}
            one = found[team].setdefault(job, new)
            one["pods"].append(pod[1])
            one["begin"] = min(one["begin"], starts[pod])
            one["going"] = one["going"] or pod in going
        return found

    def _team(self, team: str, jobs: dict[str, Object], at: float) -> None:
        notes = self._notes[team]
        for job, one in jobs.items():
            run = notes.newest(job)
            if run is None or (run["ended"] and one["begin"] > run["at"]):
                run = notes.add(job_of(job), one["kind"], job, one["begin"])
            elif run["ended"] or (one["going"] and at - run["begin"] < GROWN * run["seconds"]):
                continue
            begin = max(run["begin"], at - LONGEST_S)
            parts = self.figures.parts(team, one["pods"], begin, at, partial(role_of, job))
            last = self.figures.last(team, one["pods"], begin, at) or at
            notes.measured(run, parts, at=at, last=last, ended=not one["going"])
        notes.end_without(jobs)

    def _platform(self, at: float) -> None:
        namespace = self.api.namespace
        parts = self.figures.parts(namespace, None, at - LONGEST_S, at, workload_of)
        notes = Notes()
        for part in parts:
            name = part["role"]
            run = notes.newest(name) or notes.add(name, COMPONENT, name, at - LONGEST_S)
            notes.measured(run, [*run["parts"], {**part, "role": ""}], at=at, last=at, ended=False)
        self._notes[namespace], self._platform_at = notes, at

    def _publish(self, namespace: str, at: float, period: float) -> str:
        """Writes one namespace's notes to its ConfigMap; "" or why not."""
        notes = self._notes[namespace]
        body = notes.jobs_text()
        if self._written.get(namespace) == body:
            return ""
        notes.at = at
        text = notes.text(body, period, self.figures.scrape)
        try:
            self.api.apply(self._path(namespace), self._map(namespace, text), manager=MANAGER)
        except ApiError as error:
            return f"{namespace}/{NAME} ({error.message})"
        self._written[namespace] = body
        return ""

    def _map(self, namespace: str, text: str) -> Object:
        role = {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role", "name": NAME}
        meta = {
            "name": NAME,
            "namespace": namespace,
            "labels": {"app.kubernetes.io/part-of": "trainyard"},
            "ownerReferences": [role | {"uid": self._roles[namespace]}],
        }
        return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": {KEY: text}}

    @staticmethod
    def _path(namespace: str) -> str:
        return f"/api/v1/namespaces/{namespace}/configmaps/{NAME}"


def _pod(labels: dict[str, str]) -> tuple[str, str]:
    return labels.get("namespace", ""), labels.get("pod", "")


def run(contract_file: str, prometheus: str, period: float, scrape: float, *, once: bool = False) -> int:
    """Publishes every `period` seconds until told to stop; prints each error once and tries again."""
    usage = Usage(Api(), Figures(Prometheus(prometheus), scrape))
    say(f"publishing what jobs used, out of {prometheus}, every {period:g} s")
    well = "all is published again"
    return rounds.run(lambda contract: usage.look(contract, period), contract_file, period, well=well, once=once)
