"""Packing: pods of openb arrive until they request 130 % of the GPUs and never leave; how many GPUs are allocated?"""

from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import fmean

from trainyard_dev.bench import bounds, objects, plots, tables, traces
from trainyard_dev.bench.configurations import Configuration, column
from trainyard_dev.bench.costs import peak_mib
from trainyard_dev.bench.harness import PODGROUPS, Harness
from trainyard_dev.bench.packed import WIDE, Packed
from trainyard_dev.bench.results import Figure, Metric, Result, Run, headings, summarise_all
from trainyard_dev.bench.schedulers import scheduler
from trainyard_dev.bench.traces import Node, Pod

TITLE = "Packing"
FRESH = False

BATCH = 500  # pods that arrive together
LISTS = ("default", "multigpu30", "multigpu20", "gpuspec33", "cpu050", "gpushare40")
CORE = ("ours", "kube-default", "volcano-default", "kube-tuned")
TUNED = ("ours", "kube-tuned")  # the closest rivals: every seed is measured for these first
SHORT = ("refused8@100", "cpu_placed")
LESS = ("refused8@100", "refused8@130")
SEEDS = (1, 2, 3, 4, 5)
MARKS = (100, 130)  # % of the GPUs requested so far: when figures are taken
SIZES = (WIDE, 4, 2, 1)  # of pods, in GPUs
MEMORY_MIB = 1024  # that a scheduler may need
PLOT = "packing-allocated.svg"

INTRODUCTION = """\
Pods of openb's lists arrive in random order, without those that ask for a fraction of a GPU, until they have asked for
130 % of the GPUs. No pod ever ends, and a refused pod never returns. So a GPU is lost if it stays idle among
busy GPUs, or on a node without free cores. `default@0.25` is the list `default` on a quarter of the cluster,
`@1` on all of it: 1,523 nodes, 6,212 GPUs.

- *limit*: no placement of the same pods allocates more, even with knowledge of all pods beforehand. It is an upper
  bound computed by a linear program, and may be out of reach.
- Up to 100 %, about 60 pods of 8 GPUs arrive on `default@1`, 230 on `multigpu30@1` and 16 on `default@0.25`, where one
  refused pod is 6 %. On `default`, still fewer pods of 2 and 4 GPUs arrive.
- GPU nodes are tainted for `ours` and `kube-tuned` (`PreferNoSchedule`), and the chart's values for `ours` keep 12
  cores and 48 GiB free for each free GPU (`gpu.reserve`), which most nodes have for each of their GPUs.
- About one in ten pods of 8 GPUs asks for 120 cores and 625 GiB or more. Only 39 nodes have that much, and smaller pods
  use parts of them: in a run examined pod by pod (`multigpu30`, seed 2), `ours` refused only such pods up to 100 %.
- A third of the pods of `gpuspec33` accept only certain GPU models. A scheduler that fills small nodes first gives
  these models to pods that would accept any model, and has none left.
"""
COMPARED = {
    "allocated@100": "GPUs allocated when the pods have asked for 100 % of them, %",
    f"refused{WIDE}@100": "Pods of 8 GPUs refused at 100 %, in %",
}
METRICS: dict[str, Metric] = {}  # allocation is compared with the bound for the same pods
for _mark in MARKS:
    METRICS |= {
        f"allocated@{_mark}": (f"GPUs allocated @{_mark}, %", "%", f"bound@{_mark}"),
        **{f"refused{n}@{_mark}": (f"{n}-GPU pods refused @{_mark}, %", "%", None) for n in SIZES},
        f"fragmented@{_mark}": (f"fragmented @{_mark}, %", "%", None),
        f"slots@{_mark}": (f"nodes with room for 8 GPUs @{_mark}", "nodes", f"slots_ideal@{_mark}"),
    }
METRICS |= {
    "cpu_placed": ("pods without GPUs placed, %", "%", 100),
    "cpu_refused_fitting": ("pods without GPUs refused though they fit", "pods", 0),
    "gpu_refused_fitting": ("GPU pods refused though they fit", "pods", 0),
    "memory": ("scheduler, MiB", "MiB", MEMORY_MIB),
}
HEADINGS = headings(METRICS)


def plan(full: bool) -> list[Run]:
    """The runs; full: the first list on the whole cluster and on a quarter, other lists on the whole."""
    if not full:
        return [_run(name, 0.1, col, seed) for seed in (1, 2) for name in LISTS[:2] for col in CORE]
    runs = [_run(LISTS[0], 1.0, col, seed) for seed in SEEDS for col in CORE]
    runs += [_run(LISTS[0], 0.25, col, seed) for seed in SEEDS[:3] for col in CORE]
    for seeds, compared in ((SEEDS[:2], CORE), (SEEDS, TUNED), (SEEDS, CORE)):  # the registry takes each run once
        for seed in seeds:
            runs += [_run(name, 1.0, col, seed) for name in LISTS[1:] for col in compared]
    return runs


def measure(run: Run, harness: Harness) -> dict[str, float]:
    """Places the run's list on an empty cluster and counts the outcome."""
    nodes = traces.openb_nodes(run.settings["share"])
    pods = traces.workload(run.settings["list"], run.seed, nodes)
    harness.add_queue("default")
    placed, peak = place(harness, column(run.column), nodes, pods)
    state = Packed(nodes, [pod for pod in pods if pod.gpus == WIDE])
    values = {"memory": peak}
    for number, (pod, node) in enumerate(zip(pods, placed, strict=True), 1):
        before = state.arrived
        state.add(pod, node)
        if number % BATCH == 0 or number == len(pods):
            state.judge()
        for mark in MARKS:
            if before < mark <= state.arrived:
                values |= {f"{name}@{mark}": value for name, value in state.values().items()}
                values[f"bound@{mark}"] = 100 * bounds.most_gpus(nodes, pods[:number]) / state.gpus
    fitting = state.refused_fitting
    values |= {"cpu_placed": 100 - (state.refused(0) or 0.0), "cpu_refused_fitting": fitting[0]}
    values["gpu_refused_fitting"] = fitting.total() - fitting[0]
    return values


def place(
    harness: Harness, with_column: Configuration, nodes: Sequence[Node], pods: Sequence[Pod]
) -> tuple[list[str], float]:
    """Node of each pod ("" where it was refused) and the scheduler's highest memory in MiB.

    Pods arrive in order; the next batch follows once nothing changes any more and the refused pods are removed.
    """
    harness.add_nodes(nodes, effect=with_column.taint)
    placed: list[str] = []
    with scheduler(harness, with_column) as running:
        for batch in _batches(pods):
            with running.process.paused():  # it gets the whole batch, which is created with all processors
                if with_column.scheduler == "volcano":
                    harness.create([objects.pod_group(one.name, 1) for one in batch])
                harness.create([objects.pod(one, with_column.scheduler, group=one.name) for one in batch])
                harness.sees(one.name for one in batch)
            running.settle(harness)
            found = [harness.pods[one.name].node for one in batch]
            placed += found
            refused = [one.name for one, node in zip(batch, found, strict=True) if not node]
            harness.delete(refused)
            harness.sees(refused, gone=True)
            if with_column.scheduler == "volcano":
                harness.delete(refused, PODGROUPS)  # else it reports in every round that each of them has no pods
        return placed, peak_mib(running.process.pid)


def figures(results: Sequence[Result]) -> list[Figure]:
    """All figures, over the seeds."""
    return summarise_all(results, METRICS)


def draw(figures: Sequence[Figure], folder: Path) -> None:
    """Draws allocation by list, on the whole cluster."""
    groups: dict[str, dict[str, Sequence[float]]] = {}
    for one in figures:
        if one.metric == f"allocated@{MARKS[0]}" and _share(one.case) == 1:
            groups.setdefault(one.case.partition("@")[0], {})[one.column] = (one.value, one.low, one.high)
    if groups:
        title = "GPUs allocated when pods have asked for all of them, by list of openb"
        plots.bars(folder / PLOT, groups, title=title, y="% of the cluster's GPUs", limit=dict.fromkeys(groups, 100.0))


def section(figures: Sequence[Figure]) -> str:
    """Compares the lists on each share of the cluster; the rest is in the file of figures."""
    cases = tables.cases(figures)
    text = [INTRODUCTION, f"![GPUs allocated, by list](benchmarks/{PLOT})\n"]
    for share in sorted({_share(case) for case in cases}, reverse=True):
        text += _lists([one for one in figures if _share(one.case) == share], share)
    return "\n".join(text)


def _lists(figures: Sequence[Figure], share: float) -> list[str]:
    """The lists' figures on this share of the cluster: over all, then by metric; one table for a single list."""
    compared = [one for one in figures if one.column in CORE]
    if len(cases := tables.cases(compared)) < 2:
        named = {metric: HEADINGS[metric] for metric in COMPARED}
        return [f"`{case}`:\n\n{tables.by_column(compared, case, named)}" for case in cases]
    text = [f"### Lists compared, {100 * share:g} % of the nodes\n", _reading(compared)]
    for metric, heading in COMPARED.items():
        if any(one.metric == metric for one in compared):
            text += [f"{heading}:\n", tables.by_case(compared, metric)]
    return text


def _reading(figures: Sequence[Figure]) -> str:
    """Mean and worst figures of the lists, a line for each configuration."""
    rows = []
    for name in tables.configurations(figures):
        found = [one for one in figures if one.column == name]
        gaps = [one.bound - one.value for one in found if one.metric == "allocated@100" and one.bound is not None]
        wide = [one.value for one in found if one.metric == f"refused{WIDE}@100"]
        cores = [one.value for one in found if one.metric == "cpu_placed"]
        if gaps and wide and cores:
            cells = (fmean(gaps), max(gaps), fmean(wide), max(wide), min(cores))
            rows.append([f"`{name}`", str(len(gaps)), *map(tables.number, cells)])
    head = ["configuration", "lists", "points below the bound, mean", "at most", "8-GPU pods refused, mean %",
            "at most", "pods without GPUs placed, % at least"]  # fmt: skip
    return f"Over these lists, when pods have asked for 100 %:\n\n{tables.markdown(head, rows)}" if rows else ""


def _run(name: str, share: float, of: str, seed: int) -> Run:
    return Run("packing", f"{name}@{share:g}", of, seed, {"list": name, "share": share})


def _batches(pods: Sequence[Pod]) -> Iterator[Sequence[Pod]]:
    for start in range(0, len(pods), BATCH):
        yield pods[start : start + BATCH]


def _share(case: str) -> float:
    return float(case.partition("@")[2])
