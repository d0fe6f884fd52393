"""Comparison of ours with simulated and published results for Philly: whole traces, and parts with pods spread."""

from collections.abc import Sequence
from statistics import fmean

from trainyard_dev.bench import offline, tables
from trainyard_dev.bench.results import Figure, rounded
from trainyard_dev.bench.simulator import HOUR, MEGA, Task

WITH_CLASSES = "+classes"
TITLE = "### Compared with published policies"
BESIDE = ("published-", "paper-")  # prefixes of the columns of figures made here
COMPLETION, MAKESPAN, DURATION = "policy_completion", "policy_makespan", "duration_mean"
# (mean completion, makespan) in millions of seconds, simulated on 8 nodes of 8 GPUs with eviction and without sharing
# GPUs: Muri (SIGCOMM'22), simulator/draw_fig9-10.py
SOURCE = "Rivendile/Muri, simulator/draw_fig9-10.py at 66626473"
PUBLISHED = {
    "trace3_pr": {"SRTF": (0.844, 7.26), "SRSF": (0.798, 6.91), "Tiresias": (2.213, 6.76), "Themis": (1.503, 6.76)},
    "trace1_pr": {"SRTF": (2.304, 24.51), "SRSF": (1.802, 24.27), "Tiresias": (6.922, 21.99), "Themis": (3.314, 23.37)},
    "trace3": {"SRTF": (0.193, 8.174), "SRSF": (0.185, 8.174), "Tiresias": (0.347, 8.174), "Themis": (0.397, 8.172)},
    "trace1": {"SRTF": (1.371, 26.05), "SRSF": (0.980, 26.07), "Tiresias": (3.330, 23.56), "Themis": (1.823, 24.66)},
}
PAPER = {"paper-submission": offline.submission, "paper-shortest": offline.shortest}
INTRODUCTION = """\
Whole traces, in millions of seconds; mean completion is from submission to finish. The published policies (Muri,
SIGCOMM'22, `simulator/draw_fig9-10.py`) were simulated on as many nodes and evict jobs at will, at no cost; SRTF and
SRSF know how long each job runs. *Simulated* is the scheduler of the references above: it never evicts, and starts the
jobs that fit in the order of submission, as ours does, or the shortest job first, which requires known durations. Ours
neither needs durations nor evicts to shorten waits; users who know that a job is short can give it a higher class.
"""


def figures(trace: str, jobs: Sequence[Task], nodes: int, bound: float) -> list[Figure]:
    """Mean completion and makespan of the published policies and of the simulated one, for a whole trace."""
    command = f"the figures of {SOURCE}"
    found = []
    for name, (completion, makespan) in PUBLISHED[trace].items():
        found.append(_figure(trace, f"published-{name}", COMPLETION, completion, None, command))
        found.append(_figure(trace, f"published-{name}", MAKESPAN, makespan, bound, command))
    for name, order in PAPER.items():
        command = f"trainyard_dev.bench.offline.starts with the order {order.__name__}, philly/{trace}.csv"
        starts = offline.starts(jobs, nodes, order=order)
        completion = fmean(starts[task.name] + task.duration_s - task.submit_s for task in jobs) / MEGA
        found.append(_figure(trace, name, COMPLETION, completion, None, command))
        found.append(_figure(trace, name, MAKESPAN, offline.makespan(jobs, starts) / MEGA, bound, command))
    duration = fmean(task.duration_s for task in jobs) / MEGA
    return [*found, _figure(trace, "published-trace", DURATION, duration, None, f"philly/{trace}.csv")]


def own(figures: Sequence[Figure]) -> list[Figure]:
    """The figures of a section without those made here."""
    return [one for one in figures if not one.column.startswith(BESIDE)]


def section(figures: Sequence[Figure]) -> str:
    """Renders the table and the reasons for the distance; empty where nothing was made here."""
    traces = [case for case in PUBLISHED if tables.find(figures, case, "paper-submission", COMPLETION)]
    if not traces:
        return ""
    head = ["policy", *(f"{trace}, {what}" for trace in traces for what in ("mean completion", "makespan"))]
    names = {"`ours`": "ours", "simulated, by submission": "paper-submission", "simulated, shortest": "paper-shortest"}
    names |= {name: f"published-{name}" for name in next(iter(PUBLISHED.values()))}
    rows = []
    for name, column in names.items():
        cells = [_both(figures, trace, column) for trace in traces]
        rows.append([name, *(tables.LACKING if one is None else f"{one:.2f}" for pair in cells for one in pair)])
    limits = [tables.find(figures, trace, "paper-submission", MAKESPAN) for trace in traces]
    ends = [[tables.LACKING, f"{one.bound:.2f}" if one and one.bound else tables.LACKING] for one in limits]
    rows.append(["*limit*", *(cell for pair in ends for cell in pair)])
    return "\n".join([f"{TITLE}\n", INTRODUCTION, tables.markdown(head, rows)])


def _both(figures: Sequence[Figure], trace: str, column: str) -> tuple[float | None, float | None]:
    """Mean completion and makespan of a column on a trace."""
    if column != "ours":
        found = [tables.find(figures, trace, column, metric) for metric in (COMPLETION, MAKESPAN)]
        return found[0].value if found[0] else None, found[1].value if found[1] else None
    wait, makespan = (tables.find(figures, trace, column, metric) for metric in ("delay_mean", "makespan"))
    duration = tables.find(figures, trace, "published-trace", DURATION)
    if not (wait and makespan and duration):
        return None, None
    return wait.value * HOUR / MEGA + duration.value, makespan.value


def _figure(trace: str, column: str, metric: str, value: float, bound: float | None, command: str) -> Figure:
    limit = None if bound is None else rounded(bound)
    return Figure.once("gangs", trace, column, metric, rounded(value), "Ms", command, limit)
