"""What the throughput bench publishes: figures, and its section of the page."""

from __future__ import annotations

from collections.abc import Sequence

from trainyard_dev.bench import loads, tables
from trainyard_dev.bench.results import Figure, Result, summarise

RAW, MEMORY_MIB = "raw", 1024.0
# Metric -> unit and heading. The rate's limit is the rate of binds alone in the same case.
UNITS = {
    "pods_per_s": ("pods/s", "pods/s"),
    "wait_p50": ("s", "create → bind p50, s"),
    "wait_p99": ("s", "create → bind p99, s"),
    "writes": ("writes/pod", "writes per pod"),
    "scheduler_ms": ("ms/pod", "scheduler, CPU ms per pod"),
    "kube-apiserver_ms": ("ms/pod", "API server, CPU ms per pod"),
    "controllers_ms": ("ms/pod", "controllers, CPU ms per pod"),
    "scheduler_mib": ("MiB", "scheduler, peak MiB"),
}
HEADINGS = {metric: heading for metric, (_, heading) in UNITS.items()}
LOADS = {
    "gangs": "Gangs: {jobs} × {size} pods, one PodGroup each",
    "single": "Single pods: {pods}, each with a PodGroup of its own",
    "bulk": "Single pods: {pods} in PodGroups of {size} that need one",
    "bare": "Single pods: {pods} without PodGroups; vc-controller-manager makes them",
    "vcjobs": "Volcano jobs: {jobs} × {size}; vc-controller-manager makes pods and PodGroups",
}


def figures(results: Sequence[Result]) -> list[Figure]:
    """All figures over the seeds."""
    found: list[Figure] = []
    raw = {_same(one.case): one.value for one in summarise(results, "pods_per_s", "") if one.column == RAW}
    for case in dict.fromkeys(one.run.case for one in results):
        of_case = [one for one in results if one.run.case == case]
        bounds = {"pods_per_s": raw.get(_same(case)), "writes": None, "scheduler_mib": MEMORY_MIB}
        for metric, (unit, _) in UNITS.items():
            found += summarise(of_case, metric, unit, bounds.get(metric, 0.0))  # 0: waits and processor time
    return found


def section(figures: Sequence[Figure]) -> str:
    """The section of the page."""
    cases = [f"- `{case}`: {_title(case)}.{_reading(figures, case)}" for case in tables.cases(figures)]
    return "\n".join([INTRODUCTION, *cases, "\nPods/s:\n", tables.by_case(figures, "pods_per_s")])


INTRODUCTION = """\
The time runs from the harness's first create to the last bind that its watch tells; making the pods is part of it, and
everything shares this machine: etcd, the API server, the scheduler and the harness. So rates are relative: compare rows
and not machines. `raw` binds each pod to the next node in turn and looks at nothing: none can be faster with its
objects; where a case has no `raw`, the limit is that of a case with as many pods on the same nodes. Rounds begin as
often as in the chart (`ours`) or in Volcano's own (`volcano-default`). Seeds repeat the load. kube-scheduler and `raw`
place each pod by itself, without gangs or queues. CPU milliseconds a pod, in the file of figures, carry over to other
machines better than pods a second: here the programs take the processors from each other.
"""


def _title(case: str) -> str:
    asked = loads.load(case)
    what = LOADS[asked.kind].format(jobs=f"{asked.jobs:,}", size=asked.size, pods=f"{asked.pods:,}")
    place = "openb's 1,523 nodes" if asked.nodes == "openb" else f"{int(asked.nodes):,} nodes"
    return f"{what}; {place}{', all made before the scheduler begins' if asked.backlog else ''}"


def _reading(figures: Sequence[Figure], case: str) -> str:
    """One line: ours beside kube-scheduler and raw binds with as many pods on the same nodes."""
    rates = {one.column: one for one in figures if one.metric == "pods_per_s" and _same(one.case) == _same(case)}
    mine = tables.find(figures, case, "ours", "pods_per_s")
    beside = [
        f"{100 * mine.value / rates[name].value:.0f} % of the rate of `{name}`"
        + (f" in `{rates[name].case}`" if rates[name].case != case else "")
        for name in ("kube-default", RAW)
        if mine and name in rates
    ]
    return f" `ours` reaches {' and '.join(beside)}." if beside else ""


def _same(case: str) -> tuple[int, str, bool]:
    """What is the same work for a scheduler that knows no PodGroups."""
    asked = loads.load(case)
    return asked.pods, asked.nodes, asked.backlog
