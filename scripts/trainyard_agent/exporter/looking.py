"""Watches all kinds together, and builds the metrics page from them every few seconds."""

from __future__ import annotations

import functools
import threading
import time
from collections.abc import Mapping, Sequence
from typing import Any

from trainyard_agent.api import Api
from trainyard_agent.exporter import read_jobs, read_platform, read_pods, series_jobs, series_platform
from trainyard_agent.exporter.aside import SlowPoller
from trainyard_agent.exporter.keeping import Informer, Source
from trainyard_agent.exporter.model import WORKFLOWS, Snapshot
from trainyard_agent.exporter.runs import Runs
from trainyard_agent.exporter.series import Page
from trainyard_agent.exporter.standing import JobState, standings, waiting_gangs
from trainyard_agent.install.queues import QUEUES
from trainyard_agent.usage import gpu_counts
from trainyard_agent.usage.gpu_view import PODGROUPS

ESSENTIAL = ("nodes", "pods")
Object = dict[str, Any]


class Collector:
    """The objects of the cluster, and the page last built from them."""

    def __init__(self, api: Api, contract: Mapping[str, Any], kinds: Sequence[str]) -> None:
        self.aside = SlowPoller(api)
        self._pools: list[Object] = list(contract["nodePools"])
        gpus = gpu_counts.resources(self._pools)
        self._kept = [Informer(api, source) for source in sources(self._pools, gpus, kinds)]
        self._by_name = {kept.source.name: kept for kept in self._kept}
        self._runs = Runs()
        self._took = 0.0

    def start(self, stop: threading.Event) -> None:
        """Starts listing and watching; the threads end with the process."""
        for kept in self._kept:
            threading.Thread(target=kept.run, args=(stop,), name=kept.source.name, daemon=True).start()

    def awaited(self, patient: bool = True) -> list[str]:
        """Kinds that were not listed yet; with `patient` false, only those without which no page makes sense."""
        return [
            kept.source.name
            for kept in self._kept
            if not kept.settled.is_set() and (patient or kept.source.name in ESSENTIAL)
        ]

    def snapshot(self) -> Snapshot:
        """The cluster's current state."""
        runs = self._objects("workflows")
        jobs = [job for kept in self._kept if kept.source.name.startswith("jobs/") for job in kept.objects()]
        return Snapshot(
            nodes={name: parts for name, parts in self._objects("nodes") if parts},
            pods=self._objects("pods"),
            jobs=[*jobs, *(run.job for run in runs)],
            runs=runs,
            gangs=self._objects("podgroups"),
            queues=self._objects("queues"),
            quotas=self._objects("resourcequotas"),
            claims=self._objects("persistentvolumeclaims"),
        )

    def page(self, contract: Mapping[str, Any], now: float) -> str:
        """The text for Prometheus; `now` in seconds since 1970."""
        begun = time.monotonic()
        seen, page = self.snapshot(), Page()
        teams = {team["name"] for team in contract.get("teams") or []}
        waiting = [gang for gang, _ in waiting_gangs(seen)]
        found = standings(seen, teams, {(gang.namespace, gang.name) for gang in waiting})
        series_jobs.write(page, found, seen.quotas, now)
        series_platform.write(page, seen, teams, series_platform.owners(contract), _of_live_jobs(waiting, found))
        if self._by_name["workflows"].present:  # a run that can't be seen has not ended
            self._runs.look(seen.runs, teams)
        self._runs.write(page)
        self.aside.write(page, teams, now)
        for kept in self._kept:
            if kept.present:
                page.add("trainyard_exporter_objects", (kept.source.name,), len(kept.objects()))
                page.add("trainyard_exporter_seen_timestamp_seconds", (kept.source.name,), kept.seen)
        self._took = self._took or time.monotonic() - begun
        page.add("trainyard_exporter_look_seconds", (), self._took)
        text = page.text()
        self._took = time.monotonic() - begun
        return text

    def _objects(self, name: str) -> list[Any]:
        return self._by_name[name].objects()


def sources(pools: list[Object], gpus: tuple[str, ...], kinds: Sequence[str]) -> list[Source]:
    """The objects to watch. `kinds` are jobs, as group/version/plural; `gpus`: resource names of GPUs."""

    def node(obj: Object) -> tuple[str, list[gpu_counts.Node]]:
        return read_pods.word(obj["metadata"]["name"]), gpu_counts.nodes(obj, pools)

    job = functools.partial(read_jobs.job, gpus=gpus)
    jobs = [Source(f"jobs/{kind.rpartition('/')[2]}.{kind.partition('/')[0]}", f"/apis/{kind}", job) for kind in kinds]
    return [
        Source("nodes", "/api/v1/nodes", node),
        Source("queues", QUEUES, read_platform.queue),
        Source("resourcequotas", "/api/v1/resourcequotas", read_platform.quota),
        Source("persistentvolumeclaims", "/api/v1/persistentvolumeclaims", read_platform.claim),
        *jobs,
        Source("workflows", f"/apis/{WORKFLOWS}", functools.partial(read_jobs.run, gpus=gpus)),
        Source("podgroups", PODGROUPS, functools.partial(read_pods.gang, gpus=gpus)),
        Source("pods", "/api/v1/pods", functools.partial(read_pods.pod, gpus=gpus)),
    ]


def _of_live_jobs(waiting: list[gpu_counts.Gang], found: Mapping[Any, JobState]) -> list[gpu_counts.Gang]:
    """The gangs without those of finished jobs, whose status Volcano leaves unchanged."""
    over = {(one.gang.seen.namespace, one.gang.seen.name) for one in found.values() if one.gang and one.over}
    return [gang for gang in waiting if (gang.namespace, gang.name) not in over]
