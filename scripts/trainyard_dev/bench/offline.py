"""What is possible for gangs: the bound on the makespan, and a simulated scheduler that never evicts.

The simulation tells what is lost by which cause: with one pool of GPUs only by the order of jobs, with nodes also
by their edges, and what a real scheduler loses beyond that is its own.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Sequence

from trainyard_dev.bench.simulator import NODE_GPUS, Task

Order = Callable[[Task], tuple[float | str, ...]]
Place = Callable[[Sequence[int], int, int], list[tuple[int, int]]]


def submission(task: Task) -> tuple[float, str]:
    """First come, first tried."""
    return task.submit_s, task.name


def longest(task: Task) -> tuple[float, str]:
    """The longest job first: what nobody can do who doesn't know how long jobs will last."""
    return -task.duration_s, task.name


def shortest(task: Task) -> tuple[float, str]:
    """The shortest job first: the same."""
    return task.duration_s, task.name


def makespan_bound(jobs: Sequence[Task], gpus: int) -> float:
    """Seconds before which nobody can finish all jobs: what is still to come after each arrival, and the longest."""
    work, bound = 0.0, 0.0
    for task in sorted(jobs, key=lambda task: task.submit_s, reverse=True):
        work += task.gpus * task.duration_s
        bound = max(bound, task.submit_s + work / gpus, task.submit_s + task.duration_s)
    return bound


def fullest(free: Sequence[int], gpus: int, node_gpus: int) -> list[tuple[int, int]]:
    """Nodes for a job and the GPUs on each, whole nodes or the fullest one that has room; nothing if it doesn't fit."""
    return _first(sorted((room, node) for node, room in enumerate(free)), gpus, node_gpus)


def emptiest(free: Sequence[int], gpus: int, node_gpus: int) -> list[tuple[int, int]]:
    """The same with the emptiest one."""
    return _first(sorted(((room, node) for node, room in enumerate(free)), key=lambda one: -one[0]), gpus, node_gpus)


def pooled(free: Sequence[int], gpus: int, node_gpus: int) -> list[tuple[int, int]]:
    """The same as if all GPUs were one node."""
    if sum(free) < gpus:
        return []
    taken = []
    for node, room in enumerate(free):
        part = min(room, gpus - sum(got for _, got in taken))
        taken += [(node, part)] if part else []
    return taken


def starts(jobs: Sequence[Task], nodes: int, *, order: Order = submission, place: Place = fullest) -> dict[str, float]:
    """When each job starts: at every arrival and finish, all that fits is started in this order, nothing is evicted."""
    free = [NODE_GPUS] * nodes
    found: dict[str, float] = {}
    waiting: list[Task] = []
    coming = sorted(jobs, key=submission, reverse=True)
    ends: list[tuple[float, str, list[tuple[int, int]]]] = []
    while coming or ends:
        now = min([task.submit_s for task in coming[-1:]] + [end[0] for end in ends[:1]])
        while ends and ends[0][0] <= now:
            for node, gpus in heapq.heappop(ends)[2]:
                free[node] += gpus
        while coming and coming[-1].submit_s <= now:
            waiting.append(coming.pop())
        waiting.sort(key=order)
        left = []
        for task in waiting:
            taken = place(free, task.gpus, NODE_GPUS)
            if not taken:
                left.append(task)
                continue
            for node, gpus in taken:
                free[node] -= gpus
            found[task.name] = now
            heapq.heappush(ends, (now + task.duration_s, task.name, taken))
        waiting = left
    return found


def makespan(jobs: Sequence[Task], begun: dict[str, float]) -> float:
    """The last finish."""
    return max(begun[task.name] + task.duration_s for task in jobs)


def _first(rooms: Sequence[tuple[int, int]], gpus: int, node_gpus: int) -> list[tuple[int, int]]:
    """As many of these nodes as the job has pods, the first that have room; nothing if they are too few."""
    each, pods = min(gpus, node_gpus), -(-gpus // node_gpus)
    nodes = [node for room, node in rooms if room >= each][:pods]
    return [(node, each) for node in nodes] if len(nodes) == pods else []
