"""Limits for gangs: the bound on the makespan, and a simulated scheduler that never evicts.

The simulation shows what is lost by the order of jobs and the size of nodes; any further loss is due to the
scheduler.
"""

import heapq
from collections.abc import Callable, Sequence

from trainyard_dev.bench.simulator import NODE_GPUS, Task

Order = Callable[[Task], tuple[float | str, ...]]


def submission(task: Task) -> tuple[float, str]:
    """Sort key by submission: first come, first tried."""
    return task.submit_s, task.name


def shortest(task: Task) -> tuple[float, str]:
    """Sort key for the shortest job first, which no scheduler can apply without knowing durations beforehand."""
    return task.duration_s, task.name


def makespan_bound(jobs: Sequence[Task], gpus: int) -> float:
    """A lower bound in seconds for finishing all jobs: the work left after each arrival, and the longest job."""
    work, bound = 0.0, 0.0
    for task in sorted(jobs, key=lambda task: task.submit_s, reverse=True):
        work += task.gpus * task.duration_s
        bound = max(bound, task.submit_s + work / gpus, task.submit_s + task.duration_s)
    return bound


def fullest(free: Sequence[int], gpus: int, node_gpus: int) -> list[tuple[int, int]]:
    """Nodes for a job and the GPUs on each: whole nodes or the fullest one with room; empty if it doesn't fit."""
    each, pods = min(gpus, node_gpus), -(-gpus // node_gpus)
    nodes = [node for room, node in sorted((room, node) for node, room in enumerate(free)) if room >= each][:pods]
    return [(node, each) for node in nodes] if len(nodes) == pods else []


def starts(jobs: Sequence[Task], nodes: int, *, order: Order = submission) -> dict[str, float]:
    """Start of each job: every arrival and finish starts all jobs that fit, in this order; nothing is evicted."""
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
            taken = fullest(free, task.gpus, NODE_GPUS)
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
    """The time at which the last job finishes."""
    return max(begun[task.name] + task.duration_s for task in jobs)
