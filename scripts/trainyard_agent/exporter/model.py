"""The data kept of each object: some hundred bytes of several thousand."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from trainyard_agent.usage import gpu_counts

Object = dict[str, Any]
RUNNING, SUCCEEDED, FAILED, STOPPED = "running", "succeeded", "failed", "stopped"  # a job's state, by its own object
WORKFLOW, POD = "Workflow", "Pod"
WORKFLOWS = "argoproj.io/v1alpha1/workflows"
# Two kinds are called Job; series need a name for each.
VOLCANO_GROUP, VOLCANO_JOB = "batch.volcano.sh", "VolcanoJob"


def kind_of(group: str, kind: str) -> str:
    """The kind's name in series."""
    return VOLCANO_JOB if (group, kind) == (VOLCANO_GROUP, "Job") else kind


class JobKey(NamedTuple):
    """A job: an object of one of the kinds, another owner of pods, or a pod that has no owner."""

    namespace: str
    kind: str
    name: str


class Role(NamedTuple):
    """Identical pods of a job: how many, the GPUs of one, and what one requests."""

    pods: int
    gpus: int
    asks: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class Pod:
    """A pod. `why`: a reason of `reasons` if it has no node or can't start; `deadline`: seconds since 1970, or 0."""

    name: str
    job: JobKey
    seen: gpu_counts.Pod
    phase: str
    queue: str
    person: str
    why: str
    deadline: float

    @property
    def gpus(self) -> int:
        """GPUs of all resources together."""
        return sum(self.seen.gpus.values())


@dataclass(frozen=True, slots=True)
class Job:
    """A job of any kind. Times are seconds since 1970, 0 for none.

    `least`: pods with which it runs, 0 for all; `begun`: a pipeline's run that has begun, whose steps come and go.
    """

    key: JobKey
    state: str
    queue: str
    person: str
    run: str
    created: float
    deadline: float
    least: int
    begun: bool
    roles: tuple[Role, ...]

    @property
    def wanted(self) -> int:
        """Pods at the job's full size; 0 for a kind that doesn't declare it."""
        return sum(role.pods for role in self.roles)


@dataclass(frozen=True, slots=True)
class Run:
    """What a Workflow has in addition to any job. `seconds`: how long it took; `outcome` is "" while it runs."""

    job: Job
    uid: str
    pipeline: str
    outcome: str
    ended: float
    seconds: float


@dataclass(frozen=True, slots=True)
class Gang:
    """A PodGroup. `owner`: the object it was made for; `why`: a reason of `reasons`, if the scheduler gives one."""

    seen: gpu_counts.Gang
    owner: JobKey | None
    phase: str
    least: int
    why: str


@dataclass(frozen=True, slots=True)
class Queue:
    """A queue: amounts by resource and field. `parent`: the parent queue's name, empty for the root."""

    name: str
    parent: str
    state: str
    amounts: Mapping[str, Mapping[str, float]]


@dataclass(frozen=True, slots=True)
class Quota:
    """A quota of a team."""

    team: str
    name: str
    hard: Mapping[str, float]
    used: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class Claim:
    """A volume claim; bytes."""

    team: str
    name: str
    asked: float


@dataclass
class Snapshot:
    """The whole state at one moment; nodes by name."""

    nodes: dict[str, list[gpu_counts.Node]] = field(default_factory=dict)
    pods: list[Pod] = field(default_factory=list)
    jobs: list[Job] = field(default_factory=list)
    runs: list[Run] = field(default_factory=list)
    gangs: list[Gang] = field(default_factory=list)
    queues: list[Queue] = field(default_factory=list)
    quotas: list[Quota] = field(default_factory=list)
    claims: list[Claim] = field(default_factory=list)
