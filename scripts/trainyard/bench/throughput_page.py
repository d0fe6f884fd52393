"""What the throughput bench publishes: figures, the curve of binds, and its section of the page."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from trainyard.bench import knobs, plots, tables
from trainyard.bench.results import Figure, Result, grouped, summarise

RAW, MEMORY_MIB = "raw", 1024.0
# Metric -> unit and heading. The rate's limit is the rate of binds alone in the same case.
UNITS = {
    "pods_per_s": ("pods/s", "pods/s"),
    "wait_p50": ("s", "create → bind p50, s"),
    "wait_p99": ("s", "p99, s"),
    "writes": ("writes/pod", "writes per pod"),
    "scheduler_ms": ("ms/pod", "scheduler, CPU ms per pod"),
    "kube-apiserver_ms": ("ms/pod", "API server, CPU ms per pod"),
    "controllers_ms": ("ms/pod", "controllers, CPU ms per pod"),
    "scheduler_mib": ("MiB", "scheduler, peak MiB"),
}
SHARES = {
    "profile_filter": "filtering nodes",
    "profile_score": "scoring nodes one by one",
    "profile_batch": "scoring nodes together",
    "profile_open": "opening rounds",
    "profile_close": "closing rounds",
    "profile_bind": "binding",
    "profile_allocate": "allocating memory (part of the others)",
    "profile_collect": "collecting garbage",
}
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
    raw = {one.case: one.value for one in summarise(results, "pods_per_s", "") if one.column == RAW}
    for case in dict.fromkeys(one.run.case for one in results):
        of_case = [one for one in results if one.run.case == case]
        for metric, (unit, _) in UNITS.items():
            bound = {"pods_per_s": raw.get(case), "scheduler_mib": MEMORY_MIB}.get(metric)
            found += summarise(of_case, metric, unit, bound)
        for metric in SHARES:
            found += summarise(of_case, metric, "%")
    return found


def draw(results: Sequence[Result], folder: Path) -> None:
    """Pods bound against time for each load, the first seed of each configuration; and the rates beside each other."""
    shown = [one for one in results if not _single_change(one.run.column)]
    for case in dict.fromkeys(one.run.case for one in shown):
        curves = {column: alike[0].series["bound"] for (of, column), alike in grouped(shown).items() if of == case}
        plots.lines(
            folder / f"throughput-{_file(case)}.svg",
            {column: [[0.0, 0.0], *points] for column, points in curves.items()},
            title=f"Pods bound, {case}",
            x="seconds since the first create" if "backlog" not in case else "seconds since the scheduler began",
            y="pods",
        )


def section(figures: Sequence[Figure]) -> str:
    """The section of the page."""
    text = [INTRODUCTION]
    plain = [one for one in figures if not _single_change(one.column)]
    for case in tables.cases(plain):
        text += [
            f"### {_title(case)}\n",
            tables.by_column(plain, case, {name: head for name, (_, head) in UNITS.items()}),
        ]
        text += [_reading(plain, case), f"![{case}](benchmarks/throughput-{_file(case)}.svg)\n"]
    profiled = [one for one in figures if one.metric in SHARES]
    for case in tables.cases(profiled):
        text += [PROFILE.format(case=case), _profile(profiled, case)]
    for case in tables.cases(figures):
        if any(_single_change(one.column) for one in figures if one.case == case):
            text += [KNOBS.format(case=case), _knobs(figures, case), KNOBS_READING]
    return "\n".join(text)


INTRODUCTION = """\
The time runs from the harness's first create to the last bind that its watch tells; making the pods is part of it, and
everything shares this machine: etcd, the API server, the scheduler and the harness. So rates are relative: compare rows
and not machines. `raw` binds each pod to the next node in turn and looks at nothing: none can be faster with these
objects. Rounds begin as often as in the chart (`ours`) or in Volcano's own (`volcano-default`). Seeds repeat the load.
"""
PROFILE = """\
### Where the scheduler's time goes

Shares of the scheduler's processor time in its own profile, {case}:
"""
KNOBS = """\
### What was tried, one change at a time

Processor time of the scheduler for a pod, {case}, all pods there before it begins; the difference is to `ours`:
"""
KNOBS_READING = """\
"""


def _title(case: str) -> str:
    kind, _, rest = case.partition("-")
    size, _, where = rest.partition("@")
    jobs, pods = (int(part) for part in size.split("x"))
    nodes, _, backlog = where.partition("+")
    what = LOADS[kind].format(jobs=f"{jobs:,}", size=pods, pods=f"{jobs * pods:,}")
    place = "openb's 1,523 nodes" if nodes == "openb" else f"{int(nodes):,} nodes"
    return f"{what}; {place}{', all made before the scheduler begins' if backlog else ''}"


def _reading(figures: Sequence[Figure], case: str) -> str:
    """One line: ours beside kube-scheduler and raw binds."""
    rate = {column: tables.find(figures, case, column, "pods_per_s") for column in ("ours", "kube-default", RAW)}
    mine = rate.pop("ours")
    if mine is None:
        return ""
    beside = [
        f"{100 * mine.value / other.value:.0f} % of {name}'s rate" for name, other in rate.items() if other is not None
    ]
    return f"Ours reaches {' and '.join(beside)}.\n" if beside else ""


def _profile(figures: Sequence[Figure], case: str) -> str:
    names = tables.columns(figures, case)
    rows = [
        [heading, *(tables.cell(tables.find(figures, case, name, metric)) for name in names)]
        for metric, heading in SHARES.items()
    ]
    return tables.markdown(["share, %", *(f"`{name}`" for name in names)], rows)


def _knobs(figures: Sequence[Figure], case: str) -> str:
    ours = tables.find(figures, case, "ours", "scheduler_ms")
    rows = []
    for name in tables.columns(figures, case):
        found = tables.find(figures, case, name, "scheduler_ms")
        if found is None or not (name == "ours" or _single_change(name)):
            continue
        change = "" if ours is None or name == "ours" else f"{100 * (found.value / ours.value - 1):+.0f} %"
        label = knobs.NAMES[name][0] if name in knobs.NAMES else "as the chart has it"
        memory = tables.cell(tables.find(figures, case, name, "scheduler_mib"))
        rows.append([f"`{name}`: {label}", tables.cell(found), change, memory])
    return tables.markdown(["change", "CPU ms per pod", "against ours", "peak MiB"], rows)


def _single_change(column: str) -> bool:
    return column in knobs.NAMES


def _file(case: str) -> str:
    return case.replace("@", "-").replace("+", "-")
