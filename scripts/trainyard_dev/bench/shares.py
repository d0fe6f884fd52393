"""Weighted max-min shares of a cluster, and how far a timeline is from them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from heapq import heappop, heappush

from trainyard_dev.bench.offline import fullest
from trainyard_dev.bench.simulator import Sample, Task, Timeline

Amounts = Mapping[str, float]
NEARLY = 1e-9


def max_min(asked: Amounts, weights: Amounts, capacity: float) -> dict[str, float]:
    """Each queue's share when none can gain without a loss for a queue that has less for its weight.

    No queue gets more than it requests; what it leaves goes to the others by weight.
    """
    given = dict.fromkeys(asked, 0.0)
    wanting = {name for name, amount in asked.items() if amount > 0}
    left = capacity
    while wanting and left > NEARLY:
        level = left / sum(weights[name] for name in wanting)
        met = {name for name in wanting if asked[name] - given[name] <= level * weights[name] + NEARLY}
        for name in met or wanting:
            more = asked[name] - given[name] if met else level * weights[name]
            given[name] += more
            left -= more
        if not met:
            break
        wanting -= met
    return given


def jain(ratios: Sequence[float]) -> float:
    """Jain's index of equality: 1 when all are equal, 1/n when one has everything; 1 for no ratios."""
    squares = sum(ratio * ratio for ratio in ratios)
    return sum(ratios) ** 2 / (len(ratios) * squares) if squares else 1.0


@dataclass(frozen=True)
class Fairness:
    """A timeline compared with weighted max-min while more GPUs were requested than exist.

    `distance` is the mean of sum(|used - fair|) over the queues in parts of the cluster, 0 at best and 2 at worst;
    `jain` the mean of Jain's index of used/fair; `used` the part of the GPUs in use; `contended_s` how long that was.
    """

    distance: float
    jain: float
    used: float
    contended_s: float


def fairness(timeline: Timeline, weights: Amounts, capacity: int) -> Fairness:
    """Computes how fair a timeline was, ignoring times when every request could be met."""
    distance = equality = used = total = 0.0
    for sample, span in timeline.spans():
        if sum(sample.asked.values()) <= capacity:
            continue
        fair = max_min(sample.asked, weights, capacity)
        distance += span * sum(abs(sample.used.get(name, 0) - fair[name]) for name in fair) / capacity
        equality += span * jain([sample.used.get(name, 0) / fair[name] for name in fair if fair[name] > 0])
        used += span * sum(sample.used.values()) / capacity
        total += span
    if not total:
        return Fairness(0.0, 1.0, 0.0, 0.0)
    return Fairness(distance / total, equality / total, used / total, total)


def reference(tasks: Sequence[Task], weights: Amounts, nodes: int, node_gpus: int) -> Timeline:
    """Simulates the same jobs without a scheduler: free GPUs always go to the queue that has the least for its weight.

    Nobody is evicted; a job that fits nowhere lets the queue's next one pass. So it shows what order alone can do: the
    remaining distance is due to jobs that keep running while the demand changes. The tasks are not changed.
    """
    free = [node_gpus] * nodes
    arrivals = sorted(tasks, key=lambda task: (task.submit_s, task.name), reverse=True)
    waiting: dict[str, list[Task]] = {name: [] for name in weights}
    working: list[tuple[float, str, Task, list[tuple[int, int]]]] = []
    used, asked = dict.fromkeys(weights, 0), dict.fromkeys(weights, 0)
    timeline = Timeline(list(tasks))
    while arrivals or working:
        now = min([task.submit_s for task in arrivals[-1:]] + [item[0] for item in working[:1]])
        while working and working[0][0] <= now:
            _, _, task, held = heappop(working)
            used[task.queue] -= task.gpus
            asked[task.queue] -= task.gpus
            for node, gpus in held:
                free[node] += gpus
        while arrivals and arrivals[-1].submit_s <= now:
            task = arrivals.pop()
            waiting[task.queue].append(task)
            asked[task.queue] += task.gpus
        while found := _next(waiting, used, weights, free, node_gpus):
            task, held = found
            for node, gpus in held:
                free[node] -= gpus
            used[task.queue] += task.gpus
            waiting[task.queue].remove(task)
            heappush(working, (now + task.duration_s, task.name, task, held))
        timeline.samples.append(Sample(now, dict(used), dict(asked), 0))
    timeline.stuck = [task.name for tasks in waiting.values() for task in tasks]
    return timeline


def _next(
    waiting: Mapping[str, Sequence[Task]], used: Amounts, weights: Amounts, free: Sequence[int], node_gpus: int
) -> tuple[Task, list[tuple[int, int]]] | None:
    """The oldest job that fits from the queue that has the least, else from the next queue; with its placement."""
    sizes = {task.gpus for tasks in waiting.values() for task in tasks}
    fitting = {gpus: found for gpus in sizes if (found := fullest(free, gpus, node_gpus))}
    for queue in sorted(waiting, key=lambda name: (used[name] / weights[name], name)):
        for task in waiting[queue]:
            if task.gpus in fitting:
                return task, fitting[task.gpus]
    return None
