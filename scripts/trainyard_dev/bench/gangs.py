"""Gangs: training jobs of Philly, all pods or none, on 8 nodes of 8 GPUs in virtual time."""

import random
from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from math import inf, isfinite
from pathlib import Path

from trainyard_dev.bench import offline, plots, published, simulator, tables
from trainyard_dev.bench.configurations import column
from trainyard_dev.bench.harness import Harness
from trainyard_dev.bench.results import Figure, Result, Run, grouped, summarise
from trainyard_dev.bench.schedulers import scheduler
from trainyard_dev.bench.simulator import HOUR, MEGA, NODE_GPUS, Task, Timeline
from trainyard_dev.bench.traces import philly

TITLE = "Gangs: jobs that start completely or not at all"
FRESH = False

NODES, GPUS = 8, 8 * NODE_GPUS
SIZES = (1, 2, 4, 8, 16, 32)
PART = 150  # jobs
DRAWN, PLOT = f"trace3_pr@{PART}", "gangs-delay.svg"
SHORT = ("held",)
LESS = ("starved_32",)
CLASSES = ("training-high", "training-normal", "training-low")
CORE = ("ours", "volcano-default", "kube-default", "ours-order")
HELD = {
    "finished": "jobs that finish, %",
    "held": "GPU·h held by incomplete gangs",
    "held_share": "of the cluster's time, %",
    "held_for_ever": "GPUs held forever",
    "useful": "GPUs in use while demand is high enough, %",
    "makespan": "makespan, millions of s",
}
DELAYS = {
    "delay_mean": "mean",
    **{
        f"delay_{share}_{size}": f"{size} {'GPU' if size == 1 else 'GPUs'}, {share}"
        for size in SIZES
        for share in ("p50", "p99")
    },
    "starved_32": "p99 of 32 GPUs over that of all others",
}
HEADINGS = HELD | {metric: f"h from submission to start: {of}" for metric, of in DELAYS.items()}
HEADINGS |= {"starved_32": DELAYS["starved_32"]}
# The columns of the table with all cases; the case that is drawn has tables of its own.
BESIDE = ("delay_mean", "finished")
WHOLE = ("trace3_pr", "trace1_pr")
SEEDS = range(1, 6)
INTRODUCTION = """\
Philly jobs run on 8 nodes of 8 GPUs, in pods of at most 8 GPUs. `_pr`: all jobs arrive at the start, in random order.
`@150`: the first 150 jobs, of which 8 ask for 1 GPU, 19 for 4, 109 for 8 and 14 for 32, so the 99th percentile is the
longest wait. `+classes`: the shortest third of the jobs has the priority class `training-high` and the longest third
`training-low`, as if users roughly knew how long their jobs run. A job runs once all its pods have a node.
kube-scheduler has no concept of jobs; it helps that the pods of a job arrive in a row. GPU·hours held end with
the last event; the column *GPUs held forever* has the GPUs that a deadlock holds after that. Volcano's default prefers
the emptiest node: it leaves fewer nodes whole, so smaller jobs pass 32-GPU gangs.
"""
KUEUE = """\
Kueue admits a job to a queue of 64 GPUs, then a default kube-scheduler looks for nodes: a job that fits the total may
not fit the nodes. Kueue runs without webhooks: pods already have the fields that these would write. `waitForPodsReady`
is off, the default. Kueue orders by whole seconds; jobs of the same second (all of `_pr`) have an arbitrary order.
"""


def plan(full: bool) -> list[Run]:
    """The runs: a part of the trace with most 32-GPU gangs, every seed; other schedulers; ours on whole traces."""
    part = {seed: [_run("trace3_pr", PART, name, seed) for name in CORE] for seed in SEEDS}
    if not full:
        return part[1] + part[2]
    kueue = [_run("trace3_pr", PART, "kueue", 1)]
    arrivals = [_run("trace3", PART, name, 1) for name in CORE]
    whole = [_run(trace, None, "ours", 1) for trace in WHOLE]
    classes = [_run("trace3_pr", PART, "ours", seed, classes=True) for seed in part]
    return [run for runs in part.values() for run in runs] + kueue + arrivals + whole + classes


def measure(run: Run, harness: Harness) -> dict[str, float]:
    """Replays the jobs; see the section for what the values are."""
    jobs = dealt(run.settings["trace"], run.settings["count"], run.seed)
    if run.settings.get("classes"):
        classify(jobs)
    chosen = column(run.column)
    harness.add_nodes(simulator.nodes(NODES), effect=chosen.taint)
    harness.add_queue("default")
    with scheduler(harness, chosen) as running:
        timeline = simulator.play(harness, running, chosen, jobs)
    return judged(timeline)


def dealt(trace: str, count: int | None, seed: int) -> list[Task]:
    """The first `count` jobs of a trace; those of the same moment in random order, named in the order of submission."""
    rng = random.Random(f"{trace}/{seed}")
    jobs = philly(trace, count)
    rng.shuffle(jobs)
    jobs.sort(key=lambda job: job.submit_s)
    return simulator.tasks([replace(job, name=f"j{index:05d}") for index, job in enumerate(jobs)])


def classify(jobs: Sequence[Task]) -> None:
    """Gives the shortest third of the jobs the highest priority class and the longest third the lowest."""
    for place, task in enumerate(sorted(jobs, key=offline.shortest)):
        task.priority = CLASSES[place * len(CLASSES) // len(jobs)]


def judged(timeline: Timeline) -> dict[str, float]:
    """The values of a replay, without infinite ones; delays of jobs that never start are infinite."""
    jobs = timeline.tasks
    end = timeline.samples[-1].at_s
    bound = offline.makespan_bound(jobs, GPUS)
    busy = [(s, span) for s, span in timeline.spans() if sum(s.asked.values()) >= GPUS]
    useful = sum(span * (sum(s.used.values()) - s.incomplete) for s, span in busy)
    values = {
        "makespan_bound": bound / MEGA,
        "finished": 100 * (1 - len(timeline.stuck) / len(jobs)),
        "held": timeline.incomplete_gpu_s / HOUR,
        "held_share": 100 * timeline.incomplete_gpu_s / (GPUS * end),
        "held_for_ever": float(timeline.samples[-1].incomplete if timeline.stuck else 0),
        "useful": 100 * useful / (GPUS * sum(span for _, span in busy)),
    }
    if not timeline.stuck:
        values["makespan"] = timeline.makespan_s / MEGA
    values |= _delays(jobs)
    return {name: value for name, value in values.items() if isfinite(value)}


def figures(results: Sequence[Result]) -> list[Figure]:
    """Means over the seeds."""
    wanted: list[tuple[str, str, float | str | None]] = [
        ("finished", "%", 100.0),
        ("held", "GPU·h", 0.0),
        ("held_share", "%", 0.0),
        ("held_for_ever", "GPUs", 0.0),
        ("useful", "%", 100.0),
        ("makespan", "Ms", "makespan_bound"),
        ("delay_mean", "h", 0.0),
        *((f"delay_{share}_{size}", "h", 0.0) for size in SIZES for share in ("p50", "p99")),
        ("starved_32", "times", None),
    ]
    found = [one for metric, unit, bound in wanted for one in summarise(_always(results, metric), metric, unit, bound)]
    return found + (_published() if not {one.run.id for one in results} <= {run.id for run in plan(False)} else [])


def draw(figures: Sequence[Figure], folder: Path) -> None:
    """Draws delay by size for the case with most large gangs."""
    groups = {}
    for size in SIZES:
        bars = {one.column: one for one in figures if (one.case, one.metric) == (DRAWN, f"delay_p99_{size}")}
        if bars:
            groups[f"{size} GPUs"] = {name: (one.value, one.low, one.high) for name, one in bars.items()}
    if groups:
        title = f"99th percentile of the delay by size, {DRAWN}"
        plots.bars(folder / PLOT, groups, title=title, y="hours", log_y=True)


def section(figures: Sequence[Figure]) -> str:
    """Renders the tables and how to read them."""
    own = published.own(figures)
    lines = [INTRODUCTION, KUEUE] if any(one.column.startswith("kueue") for one in own) else [INTRODUCTION]
    lines += [f"{HEADINGS[metric]}:\n\n{tables.by_case(own, metric)}" for metric in BESIDE]
    if drawn := [one for one in own if one.case == DRAWN]:
        lines += [f"### {DRAWN}\n", tables.by_column(drawn, DRAWN, HELD)]
        lines += ["Hours from submission to start, by size (a dash if a job of that rank never starts):\n"]
        lines += [tables.by_column(drawn, DRAWN, DELAYS, bounds=False), f"![Delay by size](benchmarks/{PLOT})\n"]
    return "\n".join([*lines, published.section(figures)])


def _delays(jobs: Sequence[Task]) -> dict[str, float]:
    """Hours from submission to start: mean, percentiles by size, and how 32-GPU gangs fare against the others."""
    waits = {task.name: inf if task.wait_s is None else task.wait_s / HOUR for task in jobs}
    values = {"delay_mean": sum(waits.values()) / len(waits)}
    for size in SIZES:
        alike = sorted(waits[task.name] for task in jobs if task.gpus == size)
        if alike:
            values |= {f"delay_p50_{size}": rank(alike, 0.5), f"delay_p99_{size}": rank(alike, 0.99)}
    large = sorted(waits[task.name] for task in jobs if task.gpus == 32)
    rest = sorted(waits[task.name] for task in jobs if task.gpus < 32)
    if large:
        others = rank(rest, 0.99)
        values["starved_32"] = rank(large, 0.99) / others if others and isfinite(others) else inf
    return values


def rank(ordered: Sequence[float], share: float) -> float:
    """The smallest value that at least this share of the values does not exceed."""
    return ordered[max(0, -(-int(share * 1000) * len(ordered) // 1000) - 1)]


@cache
def _published() -> list[Figure]:
    """The figures to compare with; whole traces need half a minute, so the reduced plan has none."""
    found = []
    for trace in published.PUBLISHED:
        jobs = dealt(trace, None, 1)
        found += published.figures(trace, jobs, NODES, offline.makespan_bound(jobs, GPUS) / MEGA)
    return found


def _always(results: Sequence[Result], metric: str) -> list[Result]:
    """Results of each (case, column) whose seeds all have the metric, so that no mean covers only successful runs."""
    return [one for alike in grouped(results).values() for one in alike if all(metric in r.values for r in alike)]


def _run(trace: str, count: int | None, name: str, seed: int, *, classes: bool = False) -> Run:
    case = (f"{trace}@{count}" if count else trace) + (published.WITH_CLASSES if classes else "")
    return Run("gangs", case, name, seed, {"trace": trace, "count": count} | ({"classes": True} if classes else {}))
