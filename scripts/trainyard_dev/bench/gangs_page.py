"""The section on gangs."""

from __future__ import annotations

from collections.abc import Sequence

from trainyard_dev.bench import published, tables
from trainyard_dev.bench.gangs import DELAYS, DRAWN, HEADINGS, HELD, PLOT
from trainyard_dev.bench.results import Figure

INTRODUCTION = """\
Jobs of Philly on 8 nodes of 8 GPUs, in pods of at most 8 GPUs; `_pr`: all are there at the start, in random order;
`@150`: the first 150 jobs, of which 8 ask for 1 GPU, 19 for 4, 109 for 8 and 14 for 32: of so few the 99th percentile
is the longest. `+classes`: the shortest third of the jobs has the priority class `training-high` and the longest third
`training-low`, as users can have it who know about how long a job runs. A job runs when all its pods have a node.
kube-scheduler knows no jobs; the pods of a job come one right after the other, which helps it. GPU·hours held end with
the last event; what a deadlock holds after that is in the column *GPUs held for ever*. Volcano's default prefers the
emptiest node: it leaves fewer nodes whole, so smaller jobs pass 32-GPU gangs.
"""
KUEUE = """\
Kueue gives a job room in a queue of 64 GPUs, then a default kube-scheduler looks for nodes: what fits a sum may fit no
nodes. Kueue runs without webhooks: pods come with what these would write.
Its `waitForPodsReady` is off, as by default. It orders by whole seconds, jobs of one second (all of `_pr`) at will.
"""


# What stands in a table with all cases; the case that is drawn has tables of its own.
BESIDE = ("delay_mean", "finished")


def section(figures: Sequence[Figure]) -> str:
    """Tables and how to read them."""
    own = published.own(figures)
    lines = [INTRODUCTION, KUEUE] if any(one.column.startswith("kueue") for one in own) else [INTRODUCTION]
    lines += [f"{HEADINGS[metric]}:\n\n{tables.by_case(own, metric)}" for metric in BESIDE]
    if drawn := [one for one in own if one.case == DRAWN]:
        lines += [f"### {DRAWN}\n", tables.by_column(drawn, DRAWN, HELD)]
        lines += ["Hours from submission to start, by size (a dash where a job of that rank never starts):\n"]
        lines += [tables.by_column(drawn, DRAWN, DELAYS, bounds=False), f"![Delay by size](benchmarks/{PLOT})\n"]
    return "\n".join([*lines, published.section(figures)])
