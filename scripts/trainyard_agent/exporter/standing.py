"""The state of every job: its pods and gang, whether it waits, since when and why."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from trainyard_agent.exporter import reasons
from trainyard_agent.exporter.model import POD, RUNNING, WORKFLOW, Gang, Job, JobKey, Pod, Quota, Role, Snapshot
from trainyard_agent.usage import gpu_counts

QUEUED, WAITING, STARTING, ENDING = "queued", "waiting", "starting", "ending"
NOBODY = "unknown"  # the submitter of a job that names none


@dataclass
class JobState:
    """A job with its pods and gang. `job` is None for a pod without an owner, and for other owners of pods."""

    key: JobKey
    job: Job | None = None
    pods: list[Pod] = field(default_factory=list)
    gang: Gang | None = None
    gang_waits: bool = False
    queue: str = ""
    person: str = NOBODY

    @property
    def labels(self) -> tuple[str, str, str, str, str]:
        """Labels of the job's series, in the order of series.JOB."""
        return self.key.namespace, self.queue, self.key.name, self.key.kind, self.person

    @property
    def over(self) -> bool:
        """Whether it has ended, or was stopped."""
        return self.job is not None and self.job.state != RUNNING

    @property
    def live(self) -> list[Pod]:
        """Pods that have not ended."""
        return [pod for pod in self.pods if not pod.seen.over]

    @property
    def least(self) -> int:
        """The number of pods with which it runs."""
        if self.job and self.key.kind != WORKFLOW:
            return self.job.least or self.job.wanted or 1
        return 1 if self.key.kind in (WORKFLOW, POD) else max(1, len(self.live))

    @property
    def asked(self) -> int:
        """GPUs that it requests at its full size."""
        if self.over:
            return 0
        written = sum(role.pods * role.gpus for role in self.job.roles) if self.job else 0
        return (
            written
            or sum(pod.gpus for pod in self.live)
            or (self.gang.seen.gpus if self.gang_waits and self.gang else 0)
        )

    @property
    def held(self) -> int:
        """GPUs of its scheduled pods."""
        return sum(pod.gpus for pod in self.pods if pod.seen.node and not pod.seen.over)

    @property
    def deadline(self) -> float:
        """When it will be stopped, in seconds since 1970; 0 for never. A Volcano Job has no deadline, its pods do."""
        own = self.job.deadline if self.job else 0.0
        return own or min((pod.deadline for pod in self.live if pod.deadline), default=0.0)

    def phase(self) -> str:
        """The job's phase as one word."""
        if self.job and self.over:
            return self.job.state
        live = self.live
        running = sum(pod.phase == "Running" for pod in live)
        if running and running >= self.least:
            return RUNNING
        if any(not pod.seen.node for pod in live):
            return QUEUED
        if self.job and self.job.begun and not live:  # a pipeline's run between two steps
            return RUNNING
        if len(live) < len(self.pods) and running == len(live):  # some pods have ended, and no others follow
            return RUNNING if live else ENDING
        if self.gang_waits:
            return QUEUED
        return STARTING if live else WAITING

    def since(self) -> float:
        """Since when it waits, in seconds since 1970: its creation, or the time its pods were created again."""
        made = [pod.seen.created.timestamp() for pod in self.live if pod.seen.created]
        anew = [pod.seen.created.timestamp() for pod in self.live if pod.seen.created and not pod.seen.node]
        placed = any(pod.seen.node for pod in self.pods)
        if anew and (placed or self.key.kind == WORKFLOW):
            return min(anew)
        return self.job.created if self.job else min(made, default=0.0)

    def why(self, quotas: Iterable[Quota]) -> str:
        """The reason why it waits."""
        live = self.live
        if any(pod.why == reasons.IMAGE for pod in live):
            return reasons.IMAGE
        missing = self.job is not None and len(live) < self.least
        if missing and self.job and any(_is_full(quota, role) for quota in quotas for role in self.job.roles):
            return reasons.QUOTA
        said = Counter(pod.why for pod in live if pod.why and not pod.seen.node)
        if self.gang_waits and self.gang:
            if self.gang.why and self.gang.why != reasons.GANG:
                return self.gang.why
            others = [why for why, _ in said.most_common() if why != reasons.GANG]
            if others:
                return others[0]
            if missing and live:
                return reasons.GANG
            return self.gang.why or (reasons.QUEUE if live or missing else reasons.OTHER)
        if said:
            return said.most_common(1)[0][0]
        return reasons.GANG if missing and live and self.gang else reasons.OTHER


def standings(seen: Snapshot, teams: set[str], waiting: set[tuple[str, str]]) -> dict[JobKey, JobState]:
    """Every job of the teams; `waiting` are unscheduled gangs, by namespace and name."""
    found: dict[JobKey, JobState] = {}
    for job in seen.jobs:
        if job.key.namespace in teams:
            found[job.key] = JobState(job.key, job)
    for pod in seen.pods:
        if pod.seen.namespace in teams and (pod.job in found or not pod.seen.over):
            found.setdefault(pod.job, JobState(pod.job)).pods.append(pod)
    gangs = {(gang.seen.namespace, gang.seen.name): gang for gang in seen.gangs}
    for gang in seen.gangs:
        if gang.owner in found:
            found[gang.owner].gang = gang
    runs = {(run.job.key.namespace, run.job.key.name): run.job for run in seen.runs}
    for one in found.values():
        for pod in one.pods:
            one.gang = one.gang or gangs.get((pod.seen.namespace, pod.seen.gang))
        one.gang_waits = one.gang is not None and (one.gang.seen.namespace, one.gang.seen.name) in waiting
        named = one.job.queue if one.job else ""
        one.queue = (one.gang.seen.queue if one.gang else "") or named or next(
            (pod.queue for pod in one.pods if pod.queue), "")  # fmt: skip
        one.person = _person(one, runs)
    return found


def waiting_gangs(seen: Snapshot) -> list[tuple[gpu_counts.Gang, int]]:
    """Unscheduled gangs, as `trainyard gpus` counts them, including those without GPUs."""
    cluster = gpu_counts.Cluster(seen.nodes, [pod.seen for pod in seen.pods], [gang.seen for gang in seen.gangs])
    return gpu_counts.waiting_gangs(cluster)


def _person(one: JobState, runs: Mapping[tuple[str, str], Job]) -> str:
    """The submitter: from the job's own annotation, its pods', or its run's."""
    own = one.job.person if one.job else ""
    run = runs.get((one.key.namespace, one.job.run)) if one.job and one.job.run else None
    return own or next((pod.person for pod in one.pods if pod.person), "") or (run.person if run else "") or NOBODY


def _is_full(quota: Quota, role: Role) -> bool:
    """Whether the quota would refuse one more such pod."""
    return any(
        name in quota.hard and quota.used.get(name, 0.0) + amount > quota.hard[name]
        for name, amount in role.asks.items()
    )
