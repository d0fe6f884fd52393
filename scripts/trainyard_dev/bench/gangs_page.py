"""The section on gangs."""

from __future__ import annotations

from collections.abc import Sequence

from trainyard_dev.bench import published, tables
from trainyard_dev.bench.gangs import DELAYS, DRAWN, GPUS, HEADINGS, HELD, PLOT, REFERENCES
from trainyard_dev.bench.published import WITH_CLASSES
from trainyard_dev.bench.results import Figure

INTRODUCTION = """\
Jobs of Philly on 8 nodes of 8 GPUs, in pods of at most 8 GPUs; `_pr`: all are there at the start, in random order;
`@150`: the first 150 jobs, of which 8 ask for 1 GPU, 19 for 4, 109 for 8 and 14 for 32: of so few the 99th percentile
is the longest. `+classes`: the shortest third of the jobs has the priority class `training-high` and the longest third
`training-low`, as users can have it who know about how long a job runs. A job runs when all its pods have a node.
kube-scheduler knows no jobs; the pods of a job come one right after the other, which helps it. GPU·hours held end with
the last event; what a deadlock holds after that is in the column *GPUs held for ever*.
"""
KUEUE = """\
Kueue gives a job room in a queue of 64 GPUs, then a default kube-scheduler looks for nodes: what fits a sum may fit no
nodes. Kueue runs without webhooks: pods come with what these would write.
Its `waitForPodsReady` is off, as by default. It orders by whole seconds, jobs of one second (all of `_pr`) at will.
"""


def section(figures: Sequence[Figure]) -> str:
    """Tables and how to read them."""
    lines = [INTRODUCTION, KUEUE] if any(one.column.startswith("kueue") for one in figures) else [INTRODUCTION]
    own = published.own(figures)
    lines += [f"{HEADINGS['delay_mean']}:\n", tables.by_case(own, "delay_mean")]
    for case in tables.cases(own):
        lines += (
            [f"### {case}", "", _case(figures, case)] if case == DRAWN else [f"`{case}`: {_reading(figures, case)}"]
        )
    return "\n".join([*lines, published.section(figures)])


def _case(figures: Sequence[Figure], case: str) -> str:
    here = [one for one in published.own(figures) if one.case == case]
    parts = [
        tables.by_column(here, case, HELD),
        _reading(figures, case),
        "Hours from submission to start, by size of the jobs (a dash where a job of that rank never starts):\n",
        tables.by_column(here, case, DELAYS, bounds=False),
        f"![Delay by size](benchmarks/{PLOT})\n",
    ]
    return "\n".join(parts)


def _reading(every: Sequence[Figure], case: str) -> str:
    """Deadlocks, where the makespan's distance from its bound comes from, and how 32-GPU gangs fare."""
    figures = [one for one in published.own(every) if one.case == case]
    said = []
    for one in figures:
        if one.metric == "finished" and one.low < 100:
            ever = tables.find(figures, case, one.column, "held_for_ever")
            how = ":" if one.high < 100 else " with some seeds. In the mean over all"
            said.append(
                f"`{one.column}` deadlocks{how} {tables.number(100 - one.value)} % of the jobs never finish, and"
                f" {tables.number(ever.value if ever else 0)} of {GPUS} GPUs stay with incomplete jobs for ever."
            )
    baseline = tables.find(figures, case, "ours", "makespan")
    pool, nodes, longest = (tables.find(figures, case, "ours", name) for name in REFERENCES)
    if baseline and baseline.bound and pool and nodes and longest:
        limit, order = baseline.bound, "priority and submission" if case.endswith(WITH_CLASSES) else "submission"
        said.append(
            f"The makespan of ours is {_over(baseline.value, limit)} above the limit. Simulated, what fits started in"
            f" the order of {order} and nothing evicted, it is {_over(nodes.value, limit)} above, and"
            f" {_over(pool.value, limit)} if all GPUs were one node; with the longest job first, for which one must"
            f" know durations, {_over(longest.value, limit)}."
        )
    plain, mean = (tables.find(every, name, "ours", "delay_mean") for name in (case.removesuffix(WITH_CLASSES), case))
    if plain and mean and plain is not mean:
        said.append(
            f"Jobs wait {tables.number(mean.value)} h in the mean, {tables.number(plain.value)} without classes."
        )
    same = tables.find(figures, case, "ours", "as_on_paper")
    if same:
        said.append(
            f"With ours {tables.number(same.value)} % of the jobs start in the very second that they do in simulation."
        )
    if spread := _spread(every, case):
        said.append(spread)
    starved = [one for one in figures if one.metric == "starved_32"]
    if starved:
        each = ", ".join(f"{tables.number(one.value)} with `{one.column}`" for one in starved)
        said.append(f"The 99th percentile of the wait of 32-GPU gangs, over that of all other jobs: {each}.")
    return " ".join(said) + "\n"


def _spread(figures: Sequence[Figure], case: str) -> str:
    """What preferring the emptiest node does by itself; empty where it was not worked out."""
    wait, end = (tables.find(figures, case, published.SPREAD, metric) for metric in ("delay_mean", "makespan"))
    if not (wait and end):
        return ""
    said = (
        "Volcano's default prefers the emptiest node: in simulation that alone makes the mean wait"
        f" {tables.number(wait.value)} h and the makespan {tables.number(end.value)} million s."
    )
    baseline = tables.find(figures, case, "ours", "delay_mean")
    longest = [tables.find(figures, case, column, "delay_max_32") for column in ("volcano-default", "ours")]
    if baseline and wait.value < baseline.value and longest[0] and longest[1]:
        said += (
            " It leaves fewer nodes whole, so smaller jobs pass 32-GPU gangs, which wait up to"
            f" {tables.number(longest[0].value)} h instead of {tables.number(longest[1].value)}."
        )
    return said


def _over(value: float, bound: float) -> str:
    return f"{100 * (value / bound - 1):.1f} %"
