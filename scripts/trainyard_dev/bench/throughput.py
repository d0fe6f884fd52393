"""Throughput: pods alone and in gangs on many nodes, from the first create to the last bind, and its cost."""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, nullcontext
from time import monotonic
from typing import Any

from trainyard_dev import tools
from trainyard_dev.apiserver.processes import Server
from trainyard_dev.bench import configurations, costs, loads, tables
from trainyard_dev.bench.binder import binder
from trainyard_dev.bench.configurations import Configuration
from trainyard_dev.bench.harness import Harness
from trainyard_dev.bench.results import Figure, Metric, Result, Run, headings, summarise, summarise_all
from trainyard_dev.bench.schedulers import scheduler

TITLE = "Throughput: from the first create to the last bind"
FRESH = True
SHORT: tuple[str, ...] = ()
LESS: tuple[str, ...] = ()
PATIENCE_S = 1200.0
SEEDS = (1, 2, 3, 4, 5)
GANGS, SINGLE = "gangs-50x20@1000", "single-1000x1@1000"
ALL_GANGS, ALL_SINGLE = "gangs-500x20@1000", "single-10000x1@1000"
MEMORY, BACKLOG, ALONE = "gangs-300x20@openb", "gangs-30x20@1000+backlog", "single-600x1@1000+backlog"
KUBE = ("kube-default", "kube-tuned")
OTHERS = ("bulk-10x100@1000", "vcjobs-50x20@1000", "bare-1000x1@1000")
RAW, MEMORY_MIB = "raw", 1024.0
METRICS: dict[str, Metric] = {
    "pods_per_s": ("pods/s", "pods/s", None),  # the limit is the rate of binds alone in the same case
    "wait_p50": ("create → bind p50, s", "s", 0.0),
    "wait_p99": ("create → bind p99, s", "s", 0.0),
    "writes": ("writes per pod", "writes/pod", None),
    "scheduler_ms": ("scheduler, CPU ms per pod", "ms/pod", 0.0),
    "kube-apiserver_ms": ("API server, CPU ms per pod", "ms/pod", 0.0),
    "controllers_ms": ("controllers, CPU ms per pod", "ms/pod", 0.0),
    "scheduler_mib": ("scheduler, peak MiB", "MiB", MEMORY_MIB),
}
HEADINGS = headings(METRICS)
LOADS = {
    "gangs": "Gangs: {jobs} × {size} pods, one PodGroup each",
    "single": "Single pods: {pods}, each with a PodGroup of its own",
    "bulk": "Single pods: {pods} in PodGroups of {size} that need one",
    "bare": "Single pods: {pods} without PodGroups; vc-controller-manager makes them",
    "vcjobs": "Volcano jobs: {jobs} × {size}; vc-controller-manager makes pods and PodGroups",
}
INTRODUCTION = """\
The time runs from the harness's first create to the last bind that its watch reports. It includes creating the pods.
etcd, the API server, the scheduler and the harness share this machine, so rates are relative: compare rows,
not machines. `raw` binds each pod to the next node in turn, without any checks, so no scheduler can be faster with the
same objects. If a case has no `raw`, its limit comes from a case with as many pods on the same nodes. Rounds begin as
often as in the chart (`ours`) or in Volcano's own chart (`volcano-default`). Seeds repeat the load. kube-scheduler and
`raw` place each pod separately, without gangs or queues. CPU milliseconds per pod, in the file of figures, carry over
to other machines better than pods per second, because the programs compete for the processors here.
"""


def plan(full: bool) -> list[Run]:
    """The runs of gangs and single pods: 1,000 pods by default; when `full`, 10,000 and all variants."""
    if not full:
        return [_run(GANGS, of, 1) for of in ("ours", "kube-default", "raw")] + [_run(SINGLE, "ours", 1)]
    runs = plan(False) + [_run(case, "volcano-default", 1) for case in (GANGS, SINGLE)]
    runs += [_run(GANGS, "kueue", 1), *(_run(case, "ours", 1) for case in (BACKLOG, ALONE))]
    runs += [_run(ALL_GANGS, of, 1) for of in ("ours", "kube-default", "raw")]
    runs += [_run(MEMORY, of, 1) for of in ("ours", "kube-default", "raw")] + [_run(BACKLOG, "raw", 1)]
    runs += [*(_run(case, "ours", 1) for case in OTHERS), _run(OTHERS[1], "volcano-default", 1)]
    runs += [_run(ALL_SINGLE, "ours", 1), _run(GANGS, "kube-tuned", 1)]
    runs += [_run(BACKLOG, of, 1) for of in KUBE]
    for seed in SEEDS[1:]:
        runs += [_run(GANGS, of, seed) for of in ("ours", "kube-default", "raw", "volcano-default")]
        runs += [_run(GANGS, of, seed) for of in ("kube-tuned", "kueue")]
        runs += [_run(SINGLE, of, seed) for of in ("ours", "volcano-default")]
    for seed in SEEDS[1:3]:
        runs += [_run(case, "ours", seed) for case in (BACKLOG, ALONE)]
        runs += [_run(BACKLOG, of, seed) for of in KUBE]
        runs += [_run(case, "ours", seed) for case in OTHERS] + [_run(OTHERS[1], "volcano-default", seed)]
        runs += [_run(ALL_GANGS, of, seed) for of in ("ours", "kube-default", "raw")]
        runs += [_run(ALL_SINGLE, "ours", seed), *(_run(MEMORY, of, seed) for of in ("ours", "kube-default"))]
        runs += [_run(case, "raw", seed) for case in (MEMORY, BACKLOG)]
    return runs


def measure(run: Run, harness: Harness) -> dict[str, float]:
    """Measures one load with one scheduler on its own API server."""
    asked, column = loads.load(run.case), configurations.column(run.column)
    volcano = column.scheduler == "volcano"
    harness.add_nodes(loads.nodes(asked), effect=column.taint)
    if volcano:
        harness.add_queue("default")
    wanted = loads.made(asked, column.scheduler)
    with ExitStack() as stack:
        running = stack.enter_context(_scheduler(harness, column, int(run.settings["period_ms"])))
        programs = {name: (pid,) for name, pid in harness.server.programs.items()} | {"scheduler": running.process.pids}
        if asked.controllers and volcano:
            programs["controllers"] = stack.enter_context(_controllers(harness, column)).pids
        bound = harness.bindings
        used, wrote = {name: costs.processor_s(*pids) for name, pids in programs.items()}, costs.writes(harness)
        with running.process.paused() if asked.backlog else nullcontext():
            began = monotonic()
            harness.create(wanted)
            made = monotonic()
            if asked.backlog:
                harness.sees(loads.names(wanted))
                began = monotonic()
        harness.wait("binding", lambda: harness.bindings >= bound + asked.pods, PATIENCE_S)
        running.settle(harness)
        values = _times(harness, began) | {"created_s": made - began if made > began else 0.0}
        for name, pids in programs.items():
            values[f"{name}_ms"] = 1000 * (costs.processor_s(*pids) - used[name]) / asked.pods
        writes = costs.more(wrote, costs.writes(harness))
        values["writes"] = sum(writes.values()) / asked.pods
        values |= {f"writes_{name}": count / asked.pods for name, count in writes.items()}
        values["scheduler_mib"] = costs.peak_mib(*running.process.pids)
    return values


def _run(case: str, column: str, seed: int) -> Run:
    return Run("throughput", case, column, seed, {"period_ms": configurations.period_ms(column)})


@contextmanager
def _scheduler(harness: Harness, column: Configuration, period_ms: int) -> Iterator[Any]:
    with binder(harness) if column.scheduler == "raw" else scheduler(harness, column, period_ms=period_ms) as running:
        yield running


@contextmanager
def _controllers(harness: Harness, column: Configuration) -> Iterator[Server]:
    """Runs vc-controller-manager, which makes pods and PodGroups of Volcano Jobs, with the column's flags."""
    process = Server(
        [
            tools.binary("vc-controller-manager"), "--kubeconfig", harness.server.kubeconfig, "--leader-elect=false",
            "--enable-healthz=false", "--enable-metrics=false", "--scheduler-name=volcano",
            *configurations.controller_flags(column.name), "--v=1",
        ],
        harness.server.folder / "vc-controller-manager.log",
    )  # fmt: skip
    try:
        yield process
    finally:
        process.stop()


def _times(harness: Harness, began: float) -> dict[str, float]:
    """Overall rate, and waits since creation, or since the start for pods created before."""
    pods = list(harness.pods.values())
    waits = sorted(pod.bound - max(pod.made, began) for pod in pods)
    took = max(pod.bound for pod in pods) - began
    middle, late = (waits[min(len(waits) - 1, int(len(waits) * place))] for place in (0.5, 0.99))
    return {"pods_per_s": len(pods) / took, "wait_p50": middle, "wait_p99": late, "took_s": took}


def figures(results: Sequence[Result]) -> list[Figure]:
    """All figures over the seeds."""
    found: list[Figure] = []
    raw = {_same(one.case): one.value for one in summarise(results, "pods_per_s", "") if one.column == RAW}
    for case in dict.fromkeys(one.run.case for one in results):
        of_case = [one for one in results if one.run.case == case]
        rate = {"pods_per_s": (*METRICS["pods_per_s"][:2], raw.get(_same(case)))}
        found += summarise_all(of_case, METRICS | rate)
    return found


def section(figures: Sequence[Figure]) -> str:
    """The section of the page."""
    cases = [f"- `{case}`: {_title(case)}." for case in tables.cases(figures)]
    return "\n".join([INTRODUCTION, *cases, "\nPods/s:\n", tables.by_case(figures, "pods_per_s")])


def _title(case: str) -> str:
    asked = loads.load(case)
    what = LOADS[asked.kind].format(jobs=f"{asked.jobs:,}", size=asked.size, pods=f"{asked.pods:,}")
    place = "openb's 1,523 nodes" if asked.nodes == "openb" else f"{int(asked.nodes):,} nodes"
    return f"{what}; {place}{', all made before the scheduler begins' if asked.backlog else ''}"


def _same(case: str) -> tuple[int, str, bool]:
    """A key that is equal for loads that are the same work for a scheduler without PodGroups."""
    asked = loads.load(case)
    return asked.pods, asked.nodes, asked.backlog
