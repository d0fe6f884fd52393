"""Sharing GPUs: openb with its pods that ask for fractions of GPUs, as in the published table of FGD (ATC'23)."""

from __future__ import annotations

import csv
from collections.abc import Collection, Sequence
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from statistics import fmean
from time import monotonic, sleep

from trainyard_dev.bench import bestfit, fractional_gpus, fractional_rounds, objects, plots, traces
from trainyard_dev.bench.configurations import Configuration, column
from trainyard_dev.bench.harness import PODGROUPS, Harness
from trainyard_dev.bench.results import Figure, Measured, Result, Run, figure, grouped, summarise
from trainyard_dev.bench.schedulers import Scheduler, scheduler
from trainyard_dev.bench.sources import trace
from trainyard_dev.bench.traces import WHOLE, Node, Pod

TITLE = "Sharing GPUs"
FRESH = False
POOLED = True
SHORT: tuple[str, ...] = ()
LESS: tuple[str, ...] = ()

TOGETHER = 20  # pods that arrive at a time where they don't come one by one
ANSWER_S = 1.0  # after that a pod without an answer is waited for by the scheduler's own counters
COLUMNS = ("ours-sharing", "default-sharing")
SIMULATED = "best-fit"  # our own simulated best fit, on the same pods
SEEDS = (1, 2, 3, 4, 5)
MARKS = (100, 130)  # % of the GPUs asked for so far
CURVE = 2.0  # % between points of a curve
PUBLISHED = "openb/fgd_published_allocation.csv"
DEMAND = "1.3"  # of the published runs that are compared
KINDS = {"part": "fraction of a GPU", "card": "one GPU", "cards": "2 to 8 GPUs"}
HEADINGS = {
    **{f"allocated@{mark}": f"GPUs allocated, % at {mark} % asked for" for mark in MARKS},
    **{f"refused_{kind}": f"refused of pods with {what}, %" for kind, what in KINDS.items()},
    "cpu_placed": "CPU pods placed, %",
    "cardless": "pods bound without a GPU",
    "overfull": "GPUs allocated twice",
}


def plan(full: bool) -> list[Run]:
    """Full: a tenth of the cluster, pods one by one and together; at last what more nodes cost."""
    if not full:
        return [_run("default", 0.03, "ours-sharing", 1)]
    tenth = [_run("default", 0.1, COLUMNS[0], seed) for seed in SEEDS]
    tenth += [_run("default", 0.1, COLUMNS[1], seed) for seed in SEEDS[:3]]
    together = [_run("default", 0.1, "ours-sharing", seed, TOGETHER) for seed in SEEDS]
    return tenth + together + fractional_rounds.plan()


def measure(run: Run, harness: Harness) -> Measured:
    """Places the run's list on nodes with GPUs, and checks on every pod which GPU it got; or what a round costs."""
    if "list" not in run.settings:
        return fractional_rounds.measure(run, harness)
    nodes = traces.openb_nodes(run.settings["share"], "gpu")
    pods = traces.workload(run.settings["list"], run.seed, nodes, fractional=True)
    harness.add_queue("default")
    placed = place(harness, column(run.column), nodes, pods, run.settings["together"])
    taken = fractional_gpus.assigned(harness)
    lost = {one.name for one in pods if one.gpus and placed[one.name] and not taken[one.name]}
    real = [placed[one.name] if one.name not in lost else "" for one in pods]
    capacity = WHOLE * sum(node.gpus for node in nodes)
    curve = _curve(pods, real, capacity)
    values = {f"allocated@{mark}": value for mark, value in _at_marks(curve).items()}
    paper = _curve(pods, bestfit.place(nodes, pods), capacity)
    values |= {f"{SIMULATED}@{mark}": value for mark, value in _at_marks(paper).items()}
    values |= {f"refused_{kind}": _refused(pods, real, kind) for kind in KINDS}
    cpu = [bool(node) for one, node in zip(pods, real, strict=True) if not one.gpus]
    values["cpu_placed"] = 100 * fmean(cpu) if cpu else 100.0
    values |= {"cardless": len(lost), "overfull": fractional_gpus.overfull(taken)}
    return Measured(values, {"curve": _thin(curve), SIMULATED: _thin(paper)})


def place(
    harness: Harness, with_column: Configuration, nodes: Sequence[Node], pods: Sequence[Pod], together: int = 1
) -> dict[str, str]:
    """Node of each pod by its name, "" where it was refused: when all GPUs were told of anew and it was tried again.

    `together` pods arrive at a time; when they have an answer the device plugin speaks of the nodes that took some.
    """
    plugin = fractional_gpus.offered(harness, nodes)
    placed: dict[str, str] = {}
    with scheduler(harness, with_column) as running:
        plugin.report(node.name for node in nodes)
        running.settle(harness)
        for start in range(0, len(pods), together):
            batch = pods[start : start + together]
            names = [one.name for one in batch]
            with running.process.paused() if together > 1 else nullcontext():
                harness.create([objects.pod_group(name, 1) for name in names])
                harness.create([fractional_gpus.pod(one) for one in batch])
                harness.sees(names)
            refused = _refused_of(harness, running, plugin, names)
            placed |= {name: harness.pods[name].node for name in names}
            harness.delete(refused)
            harness.sees(refused, gone=True)
            harness.delete(refused, PODGROUPS)
    return placed


def figures(results: Sequence[Result]) -> list[Figure]:
    """What was measured, simulated best fit for the same pods, and the published table's means for the same lists."""
    rounds, results = summarise(results, fractional_rounds.METRIC, "ms"), _replays(results)
    found = [one for mark in MARKS for one in summarise(results, f"allocated@{mark}", "%", 100)]
    for kind in KINDS:
        found += summarise(results, f"refused_{kind}", "%")
    found += summarise(results, "cpu_placed", "%", 100)
    for check in ("cardless", "overfull"):
        found += summarise(results, check, "pods" if check == "cardless" else "GPUs", 0)
    return found + _on_paper(results) + _published({one.run.settings["list"] for one in results}) + rounds


def draw(_: Sequence[Figure], results: Sequence[Result], folder: Path) -> None:
    """Allocation against what has arrived, for each case."""
    results = _replays(results)
    for case in dict.fromkeys(one.run.case for one in results):
        alike = {name: found for (of, name), found in grouped(results).items() if of == case}
        shown = {name: _mean([one.series["curve"] for one in found]) for name, found in alike.items()}
        shown[SIMULATED] = _mean([one.series[SIMULATED] for one in _per_seed(alike)])
        plots.lines(
            folder / _file(case),
            shown,
            title=f"openb {case}, fractions of GPUs: GPUs allocated",
            x="GPUs asked for so far, % of the cluster",
            y="% of the cluster's GPUs",
            limit=[[0, 0], [100, 100], [130, 100]],
        )


def section(figures: Sequence[Figure]) -> str:
    """The section of the page."""
    from trainyard_dev.bench import sharing_page

    return sharing_page.section(figures, HEADINGS, _file)


def _replays(results: Sequence[Result]) -> list[Result]:
    return [one for one in results if "list" in one.run.settings]


def _refused_of(
    harness: Harness, running: Scheduler, plugin: fractional_gpus.DevicePlugin, names: Collection[str]
) -> list[str]:
    """Those of the pods that the scheduler doesn't place, though it knows all GPUs anew after each that it placed."""
    end = monotonic() + ANSWER_S
    while monotonic() < end and not all(harness.pods[name].node or harness.pods[name].refused for name in names):
        sleep(0.002)
    waiting = list(names)
    while True:
        nodes = {name: harness.pods[name].node for name in waiting}
        plugin.report(set(nodes.values()) - {""})
        waiting = [name for name, node in nodes.items() if not node]
        if not waiting:
            return waiting
        running.settle(harness)
        if not any(harness.pods[name].node for name in waiting):
            return waiting


def _curve(pods: Sequence[Pod], nodes: Sequence[str], capacity: int) -> list[list[float]]:
    """[arrived, allocated] in % of the GPUs after each pod."""
    arrived, allocated, points = 0, 0, []
    for pod, node in zip(pods, nodes, strict=True):
        arrived += pod.milli
        allocated += pod.milli if node else 0
        points.append([100 * arrived / capacity, 100 * allocated / capacity])
    return points


def _at_marks(curve: Sequence[Sequence[float]]) -> dict[int, float]:
    """Allocation when so much had arrived."""
    return {mark: next(point[1] for point in curve if point[0] >= mark) for mark in MARKS}


def _thin(curve: Sequence[Sequence[float]]) -> list[list[float]]:
    """A point every CURVE percent, at the same places for every seed."""
    steps = [CURVE * number for number in range(1, int(MARKS[-1] / CURVE) + 1)]
    return [[step, next(point[1] for point in curve if point[0] >= step)] for step in steps]


def _mean(curves: Sequence[Sequence[Sequence[float]]]) -> list[list[float]]:
    """[arrived, mean, low, high] of the seeds' curves."""
    rows = zip(*curves, strict=True)
    return [[row[0][0], fmean(p[1] for p in row), min(p[1] for p in row), max(p[1] for p in row)] for row in rows]


def _refused(pods: Sequence[Pod], nodes: Sequence[str], kind: str) -> float:
    """% of the pods of this kind that were refused."""
    alike = [not node for pod, node in zip(pods, nodes, strict=True) if _kind(pod) == kind]
    return 100 * fmean(alike) if alike else 0.0


def _kind(pod: Pod) -> str:
    if not pod.gpus:
        return "cpu"
    return "cards" if pod.gpus > 1 else "card" if pod.gpu_milli == WHOLE else "part"


def _per_seed(alike: dict[str, list[Result]]) -> list[Result]:
    """One result of each seed: what is simulated is the same for every configuration."""
    return list({one.run.seed: one for found in alike.values() for one in found}.values())


def _on_paper(results: Sequence[Result]) -> list[Figure]:
    """The same for every configuration, so of the first alone: its seeds are added as that's are."""
    found = []
    for (case, name), alike in grouped(results).items():
        if name != COLUMNS[0]:
            continue
        for mark in MARKS:
            values = [one.values[f"{SIMULATED}@{mark}"] for one in alike]
            made = figure(alike, f"allocated@{mark}", "%", values, 100)
            found.append(replace(made, column=SIMULATED, id=f"sharing.{case}.{SIMULATED}.allocated@{mark}"))
    return found


def _published(lists: Collection[str]) -> list[Figure]:
    """The means of the published runs on the whole cluster, for each policy; low and high are those of its seeds."""
    with trace(PUBLISHED).open(newline="") as text:
        rows = [row for row in csv.DictReader(text) if row["tune"] == DEMAND]
    found = []
    for name in sorted(lists):
        of_list = [row for row in rows if row["workload"] == f"openb_pod_list_{name}"]
        for policy in dict.fromkeys(row["sc_policy"] for row in of_list):
            alike = [row for row in of_list if row["sc_policy"] == policy]
            label, case = f"published-{policy.split('-', 1)[1]}", f"{name}@1"
            for mark in MARKS:
                values = [float(row[str(mark)]) for row in alike]
                found.append(
                    Figure(
                        id=f"sharing.{case}.{label}.allocated@{mark}",
                        value=round(fmean(values), 3),
                        bound=100.0,
                        unit="%",
                        seeds=[int(row["seed"]) for row in alike],
                        command=f"the mean of {PUBLISHED}",
                        low=min(values),
                        high=max(values),
                        case=case,
                        column=label,
                        metric=f"allocated@{mark}",
                    )
                )
    return found


def _run(name: str, share: float, of: str, seed: int, together: int = 1) -> Run:
    case = f"{name}@{share:g}" + (f"+{together}" if together > 1 else "")
    return Run("sharing", case, of, seed, {"list": name, "share": share, "together": together})


def _file(case: str) -> str:
    return f"sharing-{plots.word(case)}.svg"
