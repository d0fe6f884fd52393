"""What is kept of each object: some hundred bytes of several thousand."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from trainyard_agent.usage import gpu_counts

Object = dict[str, Any]
RUNNING, SUCCEEDED, FAILED, STOPPED = "running", "succeeded", "failed", "stopped"  # how a job stands by its own object
WORKFLOW, POD = "Workflow", "Pod"
WORKFLOWS = "argoproj.io/v1alpha1/workflows"
# Two kinds are called Job; series need a name for each.
VOLCANO_GROUP, VOLCANO_JOB = "batch.volcano.sh", "VolcanoJob"


def kind_of(group: str, kind: str) -> str:
    """The kind's name in series."""
    return VOLCANO_JOB if (group, kind) == (VOLCANO_GROUP, "Job") else kind


class JobKey(NamedTuple):
    """A job: an object of one of the kinds, or what else owns pods, or a pod that nothing owns."""

    namespace: str
    kind: str
    name: str


class Role(NamedTuple):
    """Pods of a job that are alike: how many, the GPUs of one, and what one asks for."""

    pods: int
    gpus: int
    asks: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class Pod:
    """A pod. `why`: a reason of `reasons`, if it has no place or can't start; `deadline`: seconds since 1970, or 0."""

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

    `least`: pods with which it runs, 0 for all of them; `begun`: a run that has begun, whose steps come and go.
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
        """Its pods at its full size; 0 for a kind that doesn't say."""
        return sum(role.pods for role in self.roles)


@dataclass(frozen=True, slots=True)
class Run:
    """What a Workflow has beside what every job has. `seconds`: how long it took; `outcome` is "" while it runs."""

    job: Job
    uid: str
    pipeline: str
    outcome: str
    ended: float
    seconds: float


@dataclass(frozen=True, slots=True)
class Gang:
    """A PodGroup. `owner`: what it was made for; `why`: a reason of `reasons`, where the scheduler says one."""

    seen: gpu_counts.Gang
    owner: JobKey | None
    phase: str
    least: int
    why: str


@dataclass(frozen=True, slots=True)
class Queue:
    """A queue: amounts by what they are. `parent`: the queue that it is part of, empty for the root."""

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
    """Everything as it is at one moment; nodes by name."""

    nodes: dict[str, list[gpu_counts.Node]] = field(default_factory=dict)
    pods: list[Pod] = field(default_factory=list)
    jobs: list[Job] = field(default_factory=list)
    runs: list[Run] = field(default_factory=list)
    gangs: list[Gang] = field(default_factory=list)
    queues: list[Queue] = field(default_factory=list)
    quotas: list[Quota] = field(default_factory=list)
    claims: list[Claim] = field(default_factory=list)
