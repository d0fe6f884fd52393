"""Simulated full clusters, reclaim requests on them, and the fewest evictions needed, by trying every choice."""

import random
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

NODE_GPUS = 8
SHAPES = ((1, 1), (1, 2), (1, 4), (1, 8), (2, 2), (2, 4), (4, 1), (4, 2), (2, 8))  # pods of a job and GPUs of each
REQUESTS = ((1, 4), (1, 8), (2, 4), (2, 8), (4, 4))
MOST_JOBS = 18  # 2^18 sets of jobs are tried in a second
HOURS = 24.0


@dataclass(frozen=True)
class RunningJob:
    """A running job: the node of each of its pods, the GPUs of one pod, and the hours that it has run."""

    name: str
    places: tuple[int, ...]
    each: int
    hours: float

    @property
    def gpu_hours(self) -> float:
        """Work that is lost when the job has to start again."""
        return len(self.places) * self.each * self.hours


@dataclass(frozen=True)
class Layout:
    """A cluster with jobs, the oldest first, and a job that reclaims: the number of its pods and the GPUs of each."""

    nodes: int
    jobs: tuple[RunningJob, ...]
    pods: int
    each: int

    @property
    def free(self) -> list[int]:
        """Free GPUs of each node."""
        free = [NODE_GPUS] * self.nodes
        for job in self.jobs:
            for node in job.places:
                free[node] -= job.each
        return free


@dataclass(frozen=True)
class FewestMoves:
    """The least to evict, each minimised alone: pods, jobs (which lose all their pods), GPU·hours of jobs."""

    pods: int
    jobs: int
    gpu_hours: float


def layout(rng: random.Random, nodes: int = 4) -> Layout:
    """A cluster filled at random until little is free, and a reclaim request that needs evictions."""
    while True:
        free, jobs = [NODE_GPUS] * nodes, list[tuple[tuple[int, ...], int]]()
        for _ in range(40):
            pods, each = rng.choice(SHAPES)
            fitting = [node for node in range(nodes) for _ in range(free[node] // each)]
            if len(fitting) >= pods and len(jobs) < MOST_JOBS:
                places = tuple(rng.sample(fitting, pods))
                for node in places:
                    free[node] -= each
                jobs.append((places, each))
        hours = sorted((round(rng.uniform(0.1, HOURS), 1) for _ in jobs), reverse=True)
        held = tuple(RunningJob(f"j{n:02d}", *job, hours[n]) for n, job in enumerate(jobs))
        pods, each = rng.choice(REQUESTS)
        found = Layout(nodes, held, pods, each)
        if sum(free) <= NODE_GPUS // 2 and sum(room // each for room in found.free) < pods:
            return found


def least(layout: Layout) -> FewestMoves:
    """The minimum over all sets of pods, and over all sets of jobs."""
    count = len(layout.jobs)
    sets = (np.arange(2**count)[:, None] >> np.arange(count)) & 1
    freed = np.zeros((count, layout.nodes), dtype=int)
    for index, job in enumerate(layout.jobs):
        for node in job.places:
            freed[index, node] += job.each
    slots = ((np.array(layout.free) + sets @ freed) // layout.each).sum(axis=1)
    fits = sets[slots >= layout.pods]
    hours = np.array([job.gpu_hours for job in layout.jobs])
    return FewestMoves(_fewest_pods(layout), int(fits.sum(axis=1).min()), float((fits @ hours).min()))


def _fewest_pods(layout: Layout) -> int:
    """Tries every set of pods of each node, then every way to spread the request over the nodes."""
    free = layout.free
    best = [0] + [10**6] * layout.pods  # pods that leave, by slots won so far
    for node in range(layout.nodes):
        sizes = [job.each for job in layout.jobs for place in job.places if place == node]
        fewest: dict[int, int] = {}
        for gone in range(len(sizes) + 1):
            for chosen in combinations(sizes, gone):
                fewest.setdefault(min(layout.pods, (free[node] + sum(chosen)) // layout.each), gone)
        best = [
            min(best[won - slots] + gone for slots, gone in (fewest | {0: 0}).items() if slots <= won)
            for won in range(layout.pods + 1)
        ]
    return best[layout.pods]


def cost(layout: Layout, gone: Sequence[str]) -> FewestMoves:
    """The cost of the evictions, by names of pods (`<job>-<number>`)."""
    hit = {name.split("-")[0] for name in gone}
    return FewestMoves(len(gone), len(hit), sum(job.gpu_hours for job in layout.jobs if job.name in hit))
