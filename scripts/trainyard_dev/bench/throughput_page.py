"""What the throughput bench publishes: figures, the curve of binds, and its section of the page."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from trainyard_dev.bench import ablations, loads, plots, tables
from trainyard_dev.bench.results import Figure, Result, grouped, summarise

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
HEADINGS = {metric: heading for metric, (_, heading) in UNITS.items()} | SHARES
KNOB_METRICS = ("pods_per_s", "wait_p50", "writes", "scheduler_mib")
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
        for metric in SHARES:
            found += summarise(of_case, metric, "%")
    return found


def draw(_: Sequence[Figure], results: Sequence[Result], folder: Path) -> None:
    """Pods bound against time for each load, the first seed of each configuration."""
    shown = [one for one in results if not _single_change(one.run.column)]
    for case in dict.fromkeys(one.run.case for one in shown):
        curves = {column: alike[0].series["bound"] for (of, column), alike in grouped(shown).items() if of == case}
        plots.lines(
            folder / f"throughput-{plots.word(case)}.svg",
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
            f"### `{case}`\n\n{_title(case)}.\n",
            tables.by_column(plain, case, {metric: HEADINGS[metric] for metric in UNITS}),
        ]
        text += [_reading(plain, case), f"![{case}](benchmarks/throughput-{plots.word(case)}.svg)\n"]
    if profiled := [one for one in figures if one.metric in SHARES]:
        text += [PROFILE, _profile(profiled)]
    for case in tables.cases(figures):
        if any(_single_change(one.column) for one in figures if one.case == case):
            text += [f"### One change at a time: {_title(case)}\n", _ablations(figures, case)]
    if any(_single_change(one.column) for one in figures):
        text += [KNOBS_READING, _least(figures)]
    return "\n".join(text)


INTRODUCTION = """\
The time runs from the harness's first create to the last bind that its watch tells; making the pods is part of it, and
everything shares this machine: etcd, the API server, the scheduler and the harness. So rates are relative: compare rows
and not machines. `raw` binds each pod to the next node in turn and looks at nothing: none can be faster with its
objects; where a case has no `raw`, the limit is that of the case that the text below the table names. Rounds begin as
often as in the chart (`ours`) or in Volcano's own (`volcano-default`). Seeds repeat the load. kube-scheduler and `raw`
place each pod by itself, without gangs or queues. CPU milliseconds a pod carry over to other machines better than pods
a second: here the programs take the processors from each other.
"""
PROFILE = """\
### Where the scheduler's time goes

Shares of the scheduler's processor time in its own profile with `ours`; what a part calls counts as its own.
"""
KNOBS_READING = """\
What stands in the way of gangs and single pods is the work for each pod on each node, not API writes, rounds or
binding; single pods have a PodGroup each besides, which takes the API server more than twice the time. Volcano 1.14
calls the scores of kube-scheduler's plugins without their preparation for the pod (`nodeorder.NodeOrderFn`). So each
node sums the pod's requests anew, and looks in vain for what preparation would have kept, with an error text each
time; twins in a gang share nothing. kube-scheduler prepares once for each pod, and as it comes it looks at 42 % of
1,000 nodes only. `volcano-default` does so too; it is faster than `ours` as it looks at fewer nodes, and packs worse.
Two changes save more than the spread (no percentage stands at the others): no balance packs worse, and fewer nodes are
the user's choice (`volcano.custom.scheduler_nodes_percent`). The rest are wishes of pods (preferred affinity, images
that are there already, spread, volumes), which count in the chart. `ours` collects garbage less often until it holds
850 MiB (`GOGC` 300, `GOMEMLIMIT`), which keeps it below the limit on memory and gained no more speed than the spread;
`volcano-default` has no such bound.
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
    return f"`ours` reaches {' and '.join(beside)}: as many pods on the same nodes.\n" if beside else ""


def _same(case: str) -> tuple[int, str, bool]:
    """What is the same work for a scheduler that knows no PodGroups."""
    asked = loads.load(case)
    return asked.pods, asked.nodes, asked.backlog


def _profile(figures: Sequence[Figure]) -> str:
    cases = tables.cases(figures)
    rows = [
        [heading, *(tables.cell(tables.find(figures, case, "ours", metric)) for case in cases)]
        for metric, heading in SHARES.items()
    ]
    return tables.markdown(["share, %", *(f"`{case}`" for case in cases)], rows)


def _ablations(figures: Sequence[Figure], case: str) -> str:
    """Each change with its effect, where that is more than the spread of the runs."""
    ours = tables.find(figures, case, "ours", "scheduler_ms")
    rows = []
    for name in ("ours", *ablations.NAMES):
        found = tables.find(figures, case, name, "scheduler_ms")
        if found is None:
            continue
        apart = ours is not None and (found.high < ours.low or found.low > ours.high)
        change = f"{100 * (found.value / ours.value - 1):+.0f} %" if ours and apart else ""
        label = ablations.NAMES[name][0] if name in ablations.NAMES else "as in the chart"
        rest = [tables.cell(tables.find(figures, case, name, metric)) for metric in KNOB_METRICS]
        rows.append([f"`{name}`: {label}", tables.cell(found), change, *rest])
    heads = [HEADINGS[metric] for metric in ("scheduler_ms", *KNOB_METRICS)]
    return tables.markdown(["change", heads[0], "against `ours`", *heads[1:]], rows)


def _least(figures: Sequence[Figure]) -> str:
    """What is left of the distance from kube-scheduler with everything off that can be."""
    for case in tables.cases(figures):
        names = ("ours", "ours-least", "kube-tuned", "kube-default")
        found = [tables.find(figures, case, name, "scheduler_ms") for name in names]
        mine, least, tuned, default = (tables.number(one.value) if one else "" for one in found)
        if all(found):
            return (
                f"The scheduler's processor time for a pod: {mine} ms with ours, {least} with all of these at once,"
                f" {tuned} with the tuned kube-scheduler, which looks at all nodes, {default} with the default one.\n"
            )
    return ""


def _single_change(column: str) -> bool:
    return column in ablations.NAMES
