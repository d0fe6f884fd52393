"""Jobs in virtual time: each instant's events are applied, and time advances when the scheduler is idle.

So decisions don't depend on the machine's speed, and months of a trace take minutes.
"""

import heapq
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from math import ceil
from time import sleep
from typing import Any

import yaml

from trainyard_dev.bench import objects
from trainyard_dev.bench.configurations import Configuration
from trainyard_dev.bench.harness import PODGROUPS, Harness
from trainyard_dev.bench.kueue_setup import ORDER_S, WORKLOADS
from trainyard_dev.bench.schedulers import Scheduler
from trainyard_dev.bench.traces import Job, Node, Pod

HOUR, MEGA = 3600.0, 1e6  # seconds
NODE_GPUS, CPU_MILLI, MEMORY_MIB = 8, 8000, 32 * 1024  # the latter two are requested with each GPU
PASSES = 50  # at one instant; a scheduler that still evicts then loops
WAITING_TIME = re.compile(r"(\d+)(ms|s|m|h)")


@dataclass
class Task:
    """A job in a replay. Times are virtual seconds; `start_s` is that of the latest start, None while it waits."""

    name: str
    gpus: int
    submit_s: float
    duration_s: float
    queue: str = "default"
    priority: str = ""
    pods: list[str] = field(default_factory=list)
    first_s: float | None = None
    start_s: float | None = None
    end_s: float | None = None
    evictions: int = 0
    lost_gpu_s: float = 0.0  # work that has to be redone
    done_s: float = 0.0  # work of earlier starts that was kept

    @property
    def wait_s(self) -> float | None:
        """From submission to the first start; None if it never started."""
        return None if self.first_s is None else self.first_s - self.submit_s


@dataclass(frozen=True)
class Sample:
    """The cluster from `at_s` to the next sample, in GPUs: used and requested by queue, held by incomplete gangs."""

    at_s: float
    used: dict[str, int]
    asked: dict[str, int]
    incomplete: int


@dataclass
class Timeline:
    """The replay. `starts` are (virtual second, job) in the order of decisions; `stuck` jobs can never start."""

    tasks: list[Task]
    samples: list[Sample] = field(default_factory=list)
    starts: list[tuple[float, str]] = field(default_factory=list)
    stuck: list[str] = field(default_factory=list)
    circles: int = 0  # instants at which the scheduler evicted without end

    @property
    def makespan_s(self) -> float:
        """The time at which the last job finishes."""
        return max((task.end_s for task in self.tasks if task.end_s is not None), default=0.0)

    @property
    def incomplete_gpu_s(self) -> float:
        """GPU·s held by incomplete gangs; not counted in a deadlock, where it would grow without end."""
        return sum(span * sample.incomplete for sample, span in self.spans())

    def spans(self) -> Iterator[tuple[Sample, float]]:
        """Every sample but the last, and how long it lasted."""
        for sample, after in zip(self.samples, self.samples[1:], strict=False):
            yield sample, after.at_s - sample.at_s


def tasks(jobs: Sequence[Job]) -> list[Task]:
    """The jobs of a trace as tasks, all in one queue, without a priority class."""
    return [Task(job.name, job.gpus, job.submit_s, job.duration_s) for job in jobs]


def nodes(count: int = 8) -> list[Node]:
    """The cluster that the Philly jobs were prepared for: nodes of 8 GPUs, 92 cores and 520 GiB."""
    return [Node(f"n{index:03d}", 92_000, 520 * 1024, NODE_GPUS) for index in range(count)]


def shape(task: Task) -> list[Pod]:
    """A job's pods: as few as nodes of 8 GPUs allow, all alike. An evicted job's have new names."""
    each = min(task.gpus, NODE_GPUS)
    names = (f"{task.name}-{task.evictions}-{index}" for index in range(ceil(task.gpus / NODE_GPUS)))
    return [Pod(name, CPU_MILLI * each, MEMORY_MIB * each, each) for name in names]


class Replay:
    """The state of a replay, for hooks: `now`, `held` (arrived, not submitted), `waiting` and `working`."""

    def __init__(self, harness: Harness, column: Configuration, jobs: Sequence[Task]) -> None:
        self.harness, self.column = harness, column
        self.now = 0.0
        self.held: list[Task] = []
        self.waiting: dict[str, Task] = {}
        self.working: dict[str, Task] = {}
        self.timeline = Timeline(list(jobs))

    def bound(self, task: Task) -> list[str]:
        """The job's pods that have a node."""
        return [name for name in task.pods if (seen := self.harness.pods.get(name)) and seen.node]

    def make(self, task: Task, pods: Sequence[Pod]) -> list[dict[str, Any]]:
        """The objects of a job that is submitted, or started again, in order."""
        kind = self.column.scheduler
        group = []
        if kind == "volcano" and not task.evictions:
            group = [objects.pod_group(task.name, len(pods), queue=task.queue, priority=task.priority)]
        place: dict[str, Any] = {"group": task.name, "of": len(pods), "queue": task.queue, "priority": task.priority}
        return group + [objects.pod(pod, kind, labels={"job": task.name}, **place) for pod in pods]

    def remove(self, finished: Sequence[Task]) -> None:
        """Deletes the objects of finished jobs."""
        self.harness.delete([name for task in finished for name in task.pods])
        if self.column.scheduler == "volcano":
            self.harness.delete([task.name for task in finished], PODGROUPS)
        if self.column.scheduler == "kueue":
            self.harness.delete([task.name for task in finished], WORKLOADS)


def play(
    harness: Harness,
    running: Scheduler,
    column: Configuration,
    jobs: Sequence[Task],
    *,
    admit: Callable[[Replay], Sequence[Task]] = lambda replay: replay.held,
    phases: bool = False,
    keep_work: bool = False,
    each_instant: Callable[[Replay], None] = lambda replay: None,
) -> Timeline:
    """Replays the jobs on a harness that has its nodes and queues.

    Names should rise with submission: Volcano orders the jobs of one second by name.

    Args:
        admit: which of replay.held are submitted now; called before and after the scheduler's work at each instant.
        phases: set bound pods to Running; preemption considers no others.
        keep_work: an evicted job resumes where it was, as with a checkpoint of that very second.
        each_instant: called when the scheduler is idle.
    """
    replay = Replay(harness, column, jobs)
    timeline = replay.timeline
    age_s = _waiting_time(column)
    arrivals = sorted(jobs, key=lambda task: (task.submit_s, task.name), reverse=True)
    finishes: list[tuple[float, str, int]] = []  # time, job, number of its evictions when it started

    def apply(over: Sequence[Task], again: Sequence[Task]) -> bool:
        """Deletes and creates jobs while the scheduler is paused; returns False when there was nothing to do."""
        new = list(admit(replay))
        if not (over or again or new):
            return False
        gone = [name for task in (*over, *again) for name in task.pods]
        with running.process.paused():
            if over:
                replay.remove(over)
            harness.delete([name for task in again for name in task.pods])
            made = []
            for task in (*again, *new):
                pods = shape(task)
                task.pods = [pod.name for pod in pods]
                made += replay.make(task, pods)
                replay.waiting[task.name] = task
            harness.create(made, in_order=True)
            replay.held = [task for task in replay.held if task not in new]
            harness.sees(gone, gone=True)
            harness.sees(name for task in (*again, *new) for name in task.pods)
            if new:
                sleep(age_s)
        return True

    def started() -> None:
        """Records the jobs that have become complete, in that order."""
        whole = []
        for task in replay.waiting.values():
            if len(replay.bound(task)) == len(task.pods):
                whole.append((max(harness.pods[name].bound for name in task.pods), task.name))
        for _, name in sorted(whole):
            task = replay.working[name] = replay.waiting.pop(name)
            task.start_s = replay.now
            task.first_s = replay.now if task.first_s is None else task.first_s
            timeline.starts.append((replay.now, name))
            heapq.heappush(finishes, (replay.now + task.duration_s - task.done_s, name, task.evictions))

    def evicted() -> list[Task]:
        """The jobs that lost a pod, which are requeued as a whole."""
        active = [*replay.working.values(), *replay.waiting.values()]
        found = [task for task in active if any(_lost(harness, name) for name in task.pods)]
        for task in found:
            replay.working.pop(task.name, None)
            task.evictions += 1
            if task.start_s is not None:
                work = replay.now - task.start_s
                task.done_s += work if keep_work else 0.0
                task.lost_gpu_s += 0.0 if keep_work else work * task.gpus
                task.start_s = None
        return found

    def runs() -> bool:
        """Sets pods bound since the last call to Running; returns False when there are none."""
        active = [*replay.working.values(), *replay.waiting.values()]
        new = [name for task in active for name in replay.bound(task) if harness.pods[name].phase == "Pending"]
        harness.set_phase(new, "Running")
        return bool(new)

    while arrivals or finishes:
        replay.now = min([task.submit_s for task in arrivals[-1:]] + [finish[0] for finish in finishes[:1]])
        over = []
        while finishes and finishes[0][0] <= replay.now:
            _, name, evictions = heapq.heappop(finishes)
            if name in replay.working and replay.working[name].evictions == evictions:
                task = replay.working.pop(name)
                task.end_s = replay.now
                over.append(task)
        while arrivals and arrivals[-1].submit_s <= replay.now:
            replay.held.append(arrivals.pop())
        again: list[Task] = []
        for _ in range(PASSES):
            if not apply(over, again) and not (phases and runs()):
                break
            over = []
            running.settle(harness)
            started()
            again = evicted()
        else:
            timeline.circles += 1
        timeline.samples.append(_sample(replay))
        each_instant(replay)
    timeline.stuck = [task.name for task in timeline.tasks if task.end_s is None]
    return timeline


def _sample(replay: Replay) -> Sample:
    used: dict[str, int] = {}
    asked: dict[str, int] = {}
    incomplete = 0
    for task in (*replay.held, *replay.waiting.values(), *replay.working.values()):
        asked[task.queue] = asked.get(task.queue, 0) + task.gpus
        has = len(replay.bound(task)) * task.gpus // len(task.pods) if task.pods else 0
        used[task.queue] = used.get(task.queue, 0) + has
        if task.name in replay.waiting:
            incomplete += has
    return Sample(replay.now, used, asked, incomplete)


def _lost(harness: Harness, pod: str) -> bool:
    seen = harness.pods.get(pod)
    return seen is None or seen.leaving


def _waiting_time(column: Configuration) -> float:
    """Seconds of real time between instants with arrivals, so that the machine's speed makes no difference.

    Volcano's sla plugin counts a job as late when it is that old; Kueue distinguishes only whole seconds.
    """
    if column.scheduler == "kueue":
        return ORDER_S
    config = yaml.safe_load(column.config) or {}
    plugins = [plugin for tier in config.get("tiers", []) for plugin in tier["plugins"] if plugin["name"] == "sla"]
    found = WAITING_TIME.fullmatch(plugins[0]["arguments"]["sla-waiting-time"]) if plugins else None
    return int(found[1]) * {"ms": 0.001, "s": 1, "m": 60, "h": 3600}[found[2]] + 0.1 if found else 0.0
