"""Order: jobs that start before others that came earlier or have a higher priority, on 8 virtual nodes of 8 GPUs."""

import random
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from trainyard.pipelines.submit.gate import Turn, next_turns
from trainyard_dev.bench import offline, overtaking, simulator, tables
from trainyard_dev.bench.configurations import column
from trainyard_dev.bench.harness import Harness
from trainyard_dev.bench.overtaking import JobRun
from trainyard_dev.bench.results import Figure, Metric, Result, Run, headings, summarise_all
from trainyard_dev.bench.schedulers import scheduler
from trainyard_dev.bench.simulator import HOUR, MEGA, NODE_GPUS, Replay, Task
from trainyard_dev.bench.traces import philly

TITLE = "Order: which jobs overtake others when the cluster is full"
FRESH = False
SHORT: tuple[str, ...] = ()
LESS: tuple[str, ...] = ()

NODES, GPUS = 8, 8 * NODE_GPUS
GATE = "+gate"  # suffix of cases whose jobs are submitted one by one
PRIORITIES = "/apis/scheduling.k8s.io/v1/priorityclasses"
CLASSES = {"training-low": 100, "training-normal": 1000, "training-high": 10000}
BURST, ARRIVALS, CLASSED, TEAMS, NAMES, RANKED = "burst", "arrivals", "classes", "teams", "names", "ranked"
CASES: dict[str, dict[str, Any]] = {
    BURST: {"trace": "trace3_pr", "count": 80},
    ARRIVALS: {"trace": "trace3", "count": 80},
    CLASSED: {"trace": "trace3", "count": 80, "classes": True},
    TEAMS: {"trace": "trace3_pr", "count": 80, "queues": 2},
    NAMES: {"trace": "trace3_pr", "count": 80, "names": True},
    RANKED: {"trace": "trace3_pr", "count": 80, "names": True, "ranked": True},
}
ABOUT = {
    BURST: "All jobs are submitted within a second, one queue, one priority.",
    ARRIVALS: "Jobs arrive as in the trace, one queue, one priority.",
    CLASSED: "The same with three priority classes, assigned at random.",
    TEAMS: "The burst, split between two queues at random.",
    NAMES: "The burst with names that don't ascend in the order of submission.",
    RANKED: "The same names; every job has a priority class of its own, lower than that of the job before.",
}
METRICS: dict[str, Metric] = {
    "violations": ("pairs out of order", "pairs", 0.0),
    "inversions": ("pairs against priority", "pairs", 0.0),
    "harmful": ("pairs that delayed the passed job", "pairs", 0.0),
    "delayed": ("jobs delayed", "jobs", 0.0),
    "delay_lost": ("hours lost by these jobs, mean", "h", None),
    "idle": ("GPUs idle while jobs wait, %", "%", 0.0),
    "makespan": ("makespan, millions of s", "Ms", "makespan_bound"),
    "delay_mean": ("mean wait, h", "h", None),
    "delay_max": ("longest wait, h", "h", None),
}
HEADINGS = headings(METRICS)
BESIDE = ("violations", "delayed", "idle", "delay_mean")  # case beside case; the rest is in the file of figures


def plan(full: bool) -> list[Run]:
    """The runs: first the burst with every way to keep order, then what else breaks it."""
    others = ["volcano-default", "kueue"]
    ways = ["ours", "ours-order", "ours-strict"]
    if not full:
        return [_run(BURST, name, 1) for name in ways] + [_run(BURST + GATE, "ours", 1), _run(NAMES, "ours-strict", 1)]
    seeds = range(1, 6)
    main = [_run(BURST, name, seed) for seed in seeds for name in (*ways, others[0])]
    main += [_run(BURST + GATE, "ours", seed) for seed in seeds]
    classes = [_run(CLASSED, name, seed) for seed in (1, 2, 3) for name in ("ours", "ours-strict")]
    teams = [_run(TEAMS, name, seed) for seed in (1, 2, 3) for name in ("ours", "ours-strict")]
    names = [_run(case, "ours-strict", seed) for seed in (1, 2, 3) for case in (NAMES, RANKED)]
    names.append(_run(NAMES + GATE, "ours", 1))
    arrivals = [_run(ARRIVALS, name, 1) for name in (*ways, *others)] + [_run(ARRIVALS + GATE, "ours", 1)]
    more = [_run(CLASSED, "ours-order", 1), _run(CLASSED + GATE, "ours", 1), _run(TEAMS, "ours-order", 1)]
    late = [_run(case, name, seed) for seed in (4, 5) for case in (CLASSED, TEAMS) for name in ("ours", "ours-strict")]
    return main + arrivals + classes + teams + names + more + late


def measure(run: Run, harness: Harness) -> dict[str, float]:
    """Replays the jobs of the case; see the section for what the values are."""
    jobs = dealt(run.settings, run.seed)
    ranks = {task.name: rank for rank, task in enumerate(jobs)}
    chosen = column(run.column)
    cluster = simulator.nodes(NODES)
    harness.add_nodes(cluster, effect=chosen.taint)
    for queue in sorted({"default", *(task.queue for task in jobs)}):
        harness.add_queue(queue)
    places: dict[str, dict[str, int]] = {}

    def note(replay: Replay) -> None:
        for task in replay.working.values():
            if task.name not in places:
                places[task.name] = {}
                for pod in task.pods:
                    node = harness.pods[pod].node
                    places[task.name][node] = places[task.name].get(node, 0) + task.gpus // len(task.pods)

    admit: Callable[[Replay], Sequence[Task]] = gate(ranks) if run.settings.get("gate") else in_turn(ranks)
    with ranked(harness, jobs if run.settings.get("ranked") else []), scheduler(harness, chosen) as running:
        timeline = simulator.play(harness, running, chosen, jobs, admit=admit, each_instant=note)
    courses = [_course(task, ranks[task.name], places.get(task.name, {})) for task in timeline.tasks]
    values = judged(courses, {node.name: node.gpus for node in cluster})
    spans = [(span, sum(s.used.values()), sum(s.asked.values())) for s, span in timeline.spans()]
    idle = sum(span * min(GPUS - used, asked - used) for span, used, asked in spans)
    wanted = sum(span * min(GPUS, asked) for span, _, asked in spans)
    return values | {
        "idle": 100 * idle / wanted,
        "makespan": timeline.makespan_s / MEGA,
        "makespan_bound": offline.makespan_bound(jobs, GPUS) / MEGA,
        "stuck": len(timeline.stuck),
    }


def dealt(settings: Any, seed: int) -> list[Task]:
    """The jobs of a case in the order of submission; what the trace leaves open is drawn with the seed."""
    rng = random.Random(f"order/{settings['trace']}/{seed}")
    found = philly(settings["trace"])
    count = settings["count"]
    if settings["trace"].endswith("_pr"):  # all at once: any of them, in any order
        found = rng.sample(found, count)
    else:  # one after the other: a part of the trace
        first = rng.randrange(len(found) - count)
        found = [replace(job, submit_s=job.submit_s - found[first].submit_s) for job in found[first : first + count]]
    names = [f"j{index:05d}" for index in range(len(found))]
    if settings.get("names"):
        rng.shuffle(names)
    jobs = simulator.tasks([replace(job, name=name) for job, name in zip(found, names, strict=True)])
    for task in jobs:
        task.priority = rng.choice(list(CLASSES)) if settings.get("classes") else ""
        task.queue = f"team-{rng.randrange(settings['queues'])}" if settings.get("queues") else "default"
    return jobs


@contextmanager
def ranked(harness: Harness, jobs: Sequence[Task]) -> Iterator[None]:
    """Gives each job its own priority class, the first the highest; removes the classes afterwards."""
    for rank, task in enumerate(jobs):
        task.priority = f"place-{rank:05d}"
    kind = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass"}
    harness.create(
        [kind | {"metadata": {"name": task.priority}, "value": len(jobs) - rank} for rank, task in enumerate(jobs)]
    )
    try:
        yield
    finally:
        harness.delete([task.priority for task in jobs], PRIORITIES)


def in_turn(ranks: dict[str, int]) -> Callable[[Replay], Sequence[Task]]:
    """Submits all jobs that have arrived, in order of arrival."""
    return lambda replay: sorted(replay.held, key=lambda task: ranks[task.name])


def gate(ranks: dict[str, int]) -> Callable[[Replay], Sequence[Task]]:
    """Submits the next job of a queue when the previous one has started."""

    def turn(task: Task) -> Turn:
        return Turn(task.name, task.queue, CLASSES.get(task.priority, 0))

    def admit(replay: Replay) -> Sequence[Task]:
        held = {task.name: task for task in in_turn(ranks)(replay)}
        chosen = next_turns([turn(task) for task in held.values()], [turn(task) for task in replay.waiting.values()])
        return [held[one.name] for one in chosen]

    return admit


def judged(jobs: Sequence[JobRun], nodes: overtaking.Room) -> dict[str, float]:
    """The measures of order, from the course of all jobs."""
    broken, inverted = overtaking.violations(jobs), overtaking.inversions(jobs)
    late = overtaking.delays(jobs, nodes, NODE_GPUS)
    waits = [job.start_s - job.submit_s for job in jobs if job.nodes]
    lost = [delay.job.start_s - delay.could_s for delay in late if delay.job.nodes]
    values = {
        "violations": len(broken),
        "inversions": len(inverted),
        "harmful": sum(len(delay.passers) for delay in late),
        "delayed": len(late),
        "delay_lost": sum(lost) / len(lost) / HOUR if lost else 0.0,
        "delay_mean": sum(waits) / len(waits) / HOUR,
        "delay_max": max(waits) / HOUR,
    }
    return {name: float(value) for name, value in values.items()}


def figures(results: Sequence[Result]) -> list[Figure]:
    """Means over the seeds."""
    return summarise_all(results, METRICS)


def section(figures: Sequence[Figure]) -> str:
    """Renders the tables and how to read them."""
    merged = [replace(one, case=one.case.removesuffix(GATE), column=_name(one.case, one.column)) for one in figures]
    about = []
    for case in (one for one in CASES if any(figure.case == one for figure in merged)):
        about.append(f"- `{case}`: {ABOUT[case]} {CASES[case]['count']} jobs of {CASES[case]['trace']}.")
    beside = [f"{HEADINGS[metric]}:\n\n{tables.by_case(merged, metric)}" for metric in BESIDE]
    return "\n\n".join(part.strip() for part in (INTRODUCTION, "\n".join(about), *beside, CAUSES)) + "\n"


INTRODUCTION = f"""
Philly jobs run on {NODES} nodes of 8 GPUs. A pair is out of order if a job starts while an earlier job of the same
queue and priority still waits. The pair did harm if the earlier job, together with all jobs before it, would have
fitted without the jobs that passed it: the table counts such pairs and jobs, and the hours until these jobs started.
`ours+gate`: the jobs are submitted one by one, the next of a queue once the previous one has started
(`trainyard.pipelines.submit.gate`). kube-scheduler has no queues, so it is not in these tables.
"""

CAUSES = """
Reasons why jobs start out of order in Volcano 1.14, and remedies:

- **Later jobs pass a job that doesn't fit.** Volcano continues with the queue's next job. With `ReservingFIFO`, the
  first job reserves the resources that its pods could use; `StrictFIFO` stops the queue there. On `burst`, passing
  then delays more jobs than with neither, but each job by far less.
- **Leftovers.** With `ReservingFIFO`, a later job may still use GPUs of a node that has no room for a pod of the first
  job, and so keep that node from becoming free. `StrictFIFO` leaves these GPUs idle.
- **Names.** Volcano orders by whole seconds, then by namespace and name. Jobs of the same second need ascending names,
  a priority class each, or a gate. Kueue with `StrictFIFO`, which is not its default, also orders by whole
  seconds; jobs of the same second have an arbitrary order.
- **Other queues.** Order applies within a queue. Resources that one queue leaves go to the next queue.
- **Not in these figures**: a job whose pods are still being created is not in the queue yet.
"""


def _name(case: str, name: str) -> str:
    return name + GATE if case.endswith(GATE) else name


def _course(task: Task, rank: int, nodes: dict[str, int]) -> JobRun:
    base = JobRun(rank, task.name, task.gpus, task.queue, CLASSES.get(task.priority, 0), task.submit_s)
    if task.start_s is None:
        return base
    return replace(base, start_s=task.start_s, end_s=task.start_s + task.duration_s, nodes=nodes)


def _run(case: str, name: str, seed: int) -> Run:
    plain = case.removesuffix(GATE)
    return Run("order", case, name, seed, CASES[plain] | ({"gate": True} if case.endswith(GATE) else {}))
