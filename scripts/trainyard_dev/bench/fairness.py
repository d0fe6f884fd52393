"""Fairness: four teams of different weights share a cluster; who has what, and what does taking back cost?"""

import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import yaml

from trainyard_dev.bench import configurations, plots, shares, simulator, tables, victims
from trainyard_dev.bench.configurations import Configuration
from trainyard_dev.bench.harness import GPU, Harness
from trainyard_dev.bench.results import Figure, Metric, Result, Run, headings, summarise_all
from trainyard_dev.bench.schedulers import scheduler
from trainyard_dev.bench.simulator import CPU_MILLI, MEMORY_MIB, NODE_GPUS, Task
from trainyard_dev.bench.traces import philly

TITLE = "Fairness, preemption and reclaim"
FRESH = False
SHORT: tuple[str, ...] = ()
LESS: tuple[str, ...] = ()
TEAMS = {"atlas": 1, "birch": 1, "cedar": 2, "delta": 4}  # by name the lightest first, so age doesn't help
NODES = 8
CORE = ("kube-default", "volcano-default", "ours", "ours-reclaim")
RECLAIM = "ours-reclaim"
LATE = {"late_s": 200_000}
ALL60 = {"trace": "trace1_pr", "jobs": 60}
LATE60 = ALL60 | LATE
SHARED = {
    "trace1_pr@100": {"trace": "trace1_pr", "jobs": 100},
    "trace1_pr@100+late": {"trace": "trace1_pr", "jobs": 100, **LATE},
}
# What only reclaiming can change: what queues deserve besides GPUs, and work that is kept.
TAKING = {
    "trace1_pr@60+late": LATE60,
    "trace1_pr@60+late+gpus": LATE60 | {"beside": "none"},
    "trace1_pr@60+late+nodes": LATE60 | {"beside": "nodes"},
    "trace1_pr@60+late+saved": LATE60 | {"saved": True},
}
ARRIVING = {"trace3@150": {"trace": "trace3", "jobs": 150}}
SEEDS = range(1, 6)
PLOT = "fairness-distance.svg"
METRICS: dict[str, Metric] = {
    "distance": ("distance", "of the cluster", 0.0),
    "distance_by_order_alone": ("by order alone", "of the cluster", 0.0),
    "jain": ("Jain", "", 1.0),
    "used_percent": ("GPUs used, %", "% of the GPUs", 100.0),
    "evictions": ("evictions", "jobs", 0.0),
    "lost_percent": ("work lost, %", "% of the jobs' GPU·s", 0.0),
    "never_finished": ("never finished", "jobs", 0.0),
    "circles": ("circles", "instants", 0.0),
}
BESIDE = ("distance", "used_percent", "never_finished")  # case beside case; the rest is in the file of figures
HEADINGS = headings(METRICS | victims.METRICS)


def plan(full: bool) -> list[Run]:
    """The runs to measure, the most important first."""
    if not full:
        runs = [Run("fairness", "trace1_pr@60", name, 1, ALL60) for name in CORE if name != RECLAIM]
        runs += [Run("fairness", "trace1_pr@60+late", name, 1, LATE60) for name in ("ours", RECLAIM)]
        return runs + victims.plan([1], count=3)
    first, late = (_runs({case: how}, CORE) for case, how in SHARED.items())
    return [
        *first,
        *victims.plan(SEEDS, count=10),
        *late,
        *_runs(TAKING, [RECLAIM]),
        *_runs(ARRIVING, CORE[:-1]),
        *_runs(ARRIVING, [RECLAIM])[:2],
    ]


def _runs(cases: dict[str, dict[str, Any]], names: Sequence[str]) -> list[Run]:
    """The runs seed by seed, so that an interrupted bench has measured all configurations."""
    return [Run("fairness", case, name, seed, how) for seed in SEEDS for case, how in cases.items() for name in names]


def measure(run: Run, harness: Harness) -> dict[str, float]:
    """One run: teams that share a cluster, or claims on a full one (a case that begins with `claims`)."""
    column = configurations.column(run.column)
    if run.case.startswith("claims"):
        return victims.measure(run, column, harness)
    jobs = dealt(run)
    nodes = simulator.nodes(NODES)
    for name, spec in queues(column, *_room(run)):
        harness.add_queue(name, **spec)
    harness.add_queue("default")
    harness.add_nodes(nodes, effect=column.taint)
    with scheduler(harness, column) as running:
        timeline = simulator.play(
            harness,
            running,
            column,
            jobs,
            phases=bool({"reclaim", "preempt"} & set(_actions(column))),
            keep_work=run.settings.get("saved", False),
        )
    capacity = NODES * NODE_GPUS
    found = shares.fairness(timeline, TEAMS, capacity)
    alone = shares.fairness(shares.reference(dealt(run), TEAMS, NODES, NODE_GPUS), TEAMS, capacity)
    work = sum(task.gpus * task.duration_s for task in jobs)
    return {
        "distance": found.distance,
        "distance_by_order_alone": alone.distance,
        "jain": found.jain,
        "used_percent": 100 * found.used,
        "evictions": float(sum(task.evictions for task in jobs)),
        "lost_percent": 100 * sum(task.lost_gpu_s for task in jobs) / work,
        "never_finished": float(len(timeline.stuck)),
        "circles": float(timeline.circles),
    }


def dealt(run: Run) -> list[Task]:
    """The run's jobs, each assigned to a random team; `late_s`: how much later the heaviest team submits its jobs."""
    rng = random.Random(f"fairness/{run.seed}")
    tasks = simulator.tasks(philly(run.settings["trace"], run.settings["jobs"]))
    heaviest = max(TEAMS, key=lambda name: TEAMS[name])
    for task in tasks:
        task.queue = rng.choice(list(TEAMS))
        if task.queue == heaviest:
            task.submit_s += run.settings.get("late_s", 0)
    return tasks


def _room(run: Run) -> tuple[int, int]:
    """Thousandths of a core and MiB per GPU in a team's deserved share; `beside`: jobs', nodes' or none."""
    [node] = simulator.nodes(1)
    return {
        "jobs": (CPU_MILLI, MEMORY_MIB),
        "nodes": (node.cpu_milli // NODE_GPUS, node.memory_mib // NODE_GPUS),
        "none": (0, 0),
    }[run.settings.get("beside", "jobs")]


def queues(column: Configuration, cpu_milli: int, memory_mib: int) -> list[tuple[str, dict[str, Any]]]:
    """The teams' queues as the chart makes them: by weight, and with what each deserves where it can reclaim that.

    A queue deserves GPUs by weight, with `cpu_milli` and `memory_mib` for each GPU.
    """
    sets = []
    reclaim = "reclaim" in _actions(column)
    for index, (name, weight) in enumerate(TEAMS.items()):
        team = f"global.contract.teams[{index}]"
        sets += [f"{team}.name={name}", f"{team}.gid={20001 + index}", f"{team}.queue.weight={weight}"]
        if reclaim:
            gpus = NODES * NODE_GPUS * weight // sum(TEAMS.values())
            room = {
                "cpu": f"{cpu_milli * gpus}m",
                "memory": f"{memory_mib * gpus}Mi",
                GPU.replace(".", "\\."): str(gpus),
            }
            sets += [f"{team}.queue.deserved.{resource}={amount}" for resource, amount in room.items()]
    switch = ["global.contract.scheduler.reclaim=true"] if reclaim else []
    return [(name, spec) for name, spec in configurations.chart_queues(*switch, *sets) if name in TEAMS]


def _actions(column: Configuration) -> list[str]:
    config = yaml.safe_load(column.config) or {}
    return [action.strip() for action in config.get("actions", "").split(",")]


def figures(results: Sequence[Result]) -> list[Figure]:
    """The figures to publish."""
    shared = [result for result in results if not result.run.case.startswith("claims")]
    claims = [result for result in results if result.run.case.startswith("claims")]
    return summarise_all(shared, METRICS) + summarise_all(claims, victims.METRICS)


def draw(figures: Sequence[Figure], folder: Path) -> None:
    """Draws the distances of all configurations."""
    groups: dict[str, dict[str, Sequence[float]]] = {}
    for figure in figures:
        if figure.metric == "distance":
            groups.setdefault(figure.case, {})[figure.column] = (figure.value, figure.low, figure.high)
    order = {figure.case: figure.value for figure in figures if figure.metric == "distance_by_order_alone"}
    title = "Distance from weighted max-min (dotted: what order can do without taking back)"
    plots.bars(folder / PLOT, groups, title=title, y="of the cluster", limit=order)


def section(figures: Sequence[Figure]) -> str:
    """Renders this bench's part of the page."""
    shared = [figure for figure in figures if not figure.case.startswith("claims")]
    teams = ", ".join(f"{name} {weight}" for name, weight in TEAMS.items())
    text = f"""Four teams share 8 nodes of 8 GPUs; each Philly job belongs to a random team. The weights of the teams'
queues: {teams}. `@60`: the first 60 jobs of the trace; `_pr`: all jobs arrive at the start. `trace1_pr@100` has 92 jobs
of 1 GPU and 8 of 8, `@60` has 56 and 4; `trace3@150` is the trace of *Gangs*, with jobs over four nodes.
At every instant, weighted max-min gives each team's fair number of GPUs: no team gets more than it asks for, and no
team can get more unless one with less for its weight gives it up. *Distance* is the sum over the teams of |held − fair|
as a fraction of the cluster, averaged over the time in which demand exceeds the cluster: 0 is perfect, 2 the worst.
*By order alone* is the distance that remains if every free GPU goes to the team with the least for its weight and
no pod is evicted; a smaller distance needs eviction, idle GPUs, or luck in which jobs run when demand changes.

`late`: the heaviest team starts two days after the others. `saved`: an evicted job continues from a checkpoint
of the same second; without `saved` it starts over. With `reclaim`, teams may claim back their part of
the GPUs, with as much CPU and memory as their jobs use; `gpus`: no CPU and memory, so that GPUs alone decide; `nodes`:
a part of the nodes' CPU and memory, more than the jobs use. *Circles* are instants at which eviction did not end.
If a job loses a pod, the harness removes the whole job and submits it again at once, as a Volcano job does with
`PodEvicted: RestartJob`. Without that policy, Volcano leaves the rest of the gang on its GPUs; this is not measured.
Kueue's cohorts, fair sharing and preemption are not measured.

![distance from weighted max-min](benchmarks/{PLOT})

"""
    for metric in BESIDE:
        text += f"{HEADINGS[metric]}:\n\n{tables.by_case(shared, metric)}\n"
    if any(figure.metric == "circles" and figure.value for figure in shared):
        text += "Because reclaiming may not end, the chart disables it by default.\n\n"
    return text + "\n" + victims.section([figure for figure in figures if figure.case.startswith("claims")])
