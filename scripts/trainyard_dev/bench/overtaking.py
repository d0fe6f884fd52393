"""Overtaking: jobs that started before others that came earlier or have a higher priority, and the delay it cost."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from math import ceil, inf

Room = dict[str, int]  # free GPUs by node


@dataclass(frozen=True)
class JobRun:
    """The course of one job: place in the order of submission, arrival, start and end, and its GPUs by node.

    `start_s` and `end_s` are infinite for a job that never started.
    """

    rank: int
    name: str
    gpus: int
    queue: str
    priority: int
    submit_s: float
    start_s: float = inf
    end_s: float = inf
    nodes: Room = field(default_factory=dict)


@dataclass(frozen=True)
class Delay:
    """A job that would have started at `could_s` if the `passers` hadn't held its GPUs."""

    job: JobRun
    could_s: float
    passers: list[JobRun]


def violations(jobs: Sequence[JobRun]) -> list[tuple[JobRun, JobRun]]:
    """Pairs (i, j) of one queue and priority: i came first and was still waiting when j started."""
    return list(_pairs(jobs, lambda i, j: i.priority == j.priority and i.rank < j.rank))


def inversions(jobs: Sequence[JobRun]) -> list[tuple[JobRun, JobRun]]:
    """Pairs (i, j) of one queue: i has the higher priority and was still waiting when j started."""
    return list(_pairs(jobs, lambda i, j: i.priority > j.priority))


def delays(jobs: Sequence[JobRun], nodes: Room, most: int) -> list[Delay]:
    """Jobs that would have started earlier had none overtaken them: the first such moment for each.

    At each moment the GPUs of all jobs that overtook it are freed; it could have started if it then fits together
    with all that wait before it in its queue. Consequences of the earlier start are not simulated.
    """
    passers: dict[int, list[JobRun]] = {}
    for i, j in (*violations(jobs), *inversions(jobs)):
        passers.setdefault(i.rank, []).append(j)
    moments = sorted({moment for job in jobs for moment in (job.submit_s, job.start_s, job.end_s) if moment < inf})
    found = []
    for job in jobs:
        mine = passers.get(job.rank, [])
        aside = {other.rank for other in mine}
        for now in moments if mine else ():
            if now < job.submit_s or now >= job.start_s or not any(j.start_s <= now < j.end_s for j in mine):
                continue
            free = room(nodes, [j for j in jobs if j.start_s <= now < j.end_s and j.rank not in aside])
            queued = [j for j in jobs if j.queue == job.queue and j.submit_s <= now < j.start_s]
            before = [j for j in queued if (-j.priority, j.rank) < (-job.priority, job.rank)]
            if all(fit(free, j.gpus, most) for j in (*before, job)):
                found.append(Delay(job, now, [j for j in mine if j.start_s <= now < j.end_s]))
                break
    return found


def room(nodes: Room, held: Sequence[JobRun]) -> Room:
    """The free GPUs of each node while these jobs run."""
    free = dict(nodes)
    for job in held:
        for name, gpus in job.nodes.items():
            free[name] -= gpus
    return free


def fit(free: Room, gpus: int, most: int) -> bool:
    """Gives a job its pods' GPUs in `free`, each pod on the fullest node that has room; False when one has none."""
    each = min(gpus, most)
    for _ in range(ceil(gpus / most)):
        name = min((n for n in free if free[n] >= each), key=lambda n: (free[n], n), default="")
        if not name:
            return False
        free[name] -= each
    return True


def _pairs(jobs: Sequence[JobRun], before: Callable[[JobRun, JobRun], bool]) -> Iterator[tuple[JobRun, JobRun]]:
    for i in jobs:
        for j in jobs:
            if i.queue == j.queue and i.submit_s <= j.start_s < i.start_s and before(i, j):
                yield i, j
