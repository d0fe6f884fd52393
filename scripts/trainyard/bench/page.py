"""The page docs/benchmarks.md: made from the summary alone, so that `make verify` can compare it."""

from __future__ import annotations

import re
from pathlib import Path

from trainyard.bench import registry, summary, tables
from trainyard.bench.results import Figure
from trainyard.bench.runner import minutes_text
from trainyard.bench.summary import Summary
from trainyard.paths import ROOT

PAGE = ROOT / "docs" / "benchmarks.md"
FOLDER = ROOT / "docs" / "benchmarks"  # summary.json and the plots
PROGRAMS = {"kubernetes": "Kubernetes", "volcano": "Volcano", "etcd": "etcd", "kueue": "Kueue"}

SHORT = ("kube-default", "volcano-default", "ours")
CASES = 3  # of a bench in the short table
NO_RIVALS = ("ours", "raw")  # variants of ours; bindings without a scheduler, which are a limit themselves
MOST = ("MiB",)  # units whose limit is not to be exceeded, others' is to be reached

PLOT = re.compile(r"^!\[[^]\n]*\]\(benchmarks/([^)\n]+)\)\n*", re.M)

METHOD = """## How it is measured

etcd, kube-apiserver and one scheduler at a time run as real processes. Nodes and pods are objects on that API server:
no kubelet, no container. The harness plays the rest: it makes the pods and PodGroups of a trace, says that a pod runs,
and removes it at its end. Every scheduler gets the same nodes, pods, requests and order, and no webhook.

- **Virtual time.** The clock goes to the next arrival or end of a job, waits until the scheduler has nothing left to
  do, which its own counters tell, and goes on. Results don't depend on the machine's speed. Only throughput is measured
  in real seconds: its figures compare with each other, not with those of another machine.
- **Seeds.** A figure is the mean over its seeds, with the lowest and the highest in brackets where they differ.
  Settings were chosen with seed 42 on openb's lists `default` and `multigpu50`; reported are seeds from 1 on.
- **Limits.** Beside a figure stands what no scheduler can beat, where that is known: a bound, zero, or a minimum.
- **Our configuration is the chart's.** The harness renders the chart and hands its ConfigMap and flags to the
  scheduler; only the period between rounds is shorter. `make verify` fails when the chart no longer renders what was
  measured.
"""

OPENB = (
    "openb",
    "Alibaba's GPU cluster of 2023: 1,523 nodes, 6,212 GPUs, lists of pods",
    "[alibaba/clusterdata](https://github.com/alibaba/clusterdata), `cluster-trace-gpu-v2023`, commit 7a6c496e; also "
    "in "
    "[hkust-adsl/kubernetes-scheduler-simulator](https://github.com/hkust-adsl/kubernetes-scheduler-simulator)",
    "none stated in the first, Apache-2.0 in the second",
)
PHILLY = (
    "Philly",
    "jobs of two virtual clusters of Microsoft's Philly trace, as prepared for Muri (SIGCOMM'22)",
    "[Rivendile/Muri](https://github.com/Rivendile/Muri), `simulator/trace-data`, commit 4e69a78c",
    "Apache-2.0; the trace itself CC BY 4.0",
)
LEFT_OUT = """
openb's pods that ask for a part of a GPU are left out unless a section says otherwise, so figures on packing don't
compare with tables published for the whole lists.
"""


def render(found: Summary) -> str:
    """The page's text."""
    benches = [name for name in registry.names() if name in found.runs]
    parts = [_head(found), _short(found), METHOD, _environment(found), _configurations(found)]
    for name in benches:
        bench = registry.load(name)
        parts.append(f"## {bench.TITLE}\n\n{_drawn(bench.section(found.of(name)), found.plots).strip()}\n")
    parts += [_losses(found), _repeat(found), _data()]
    return "\n".join(filter(None, parts))


def write(found: Summary, page: Path) -> None:
    """Writes the page."""
    page.parent.mkdir(parents=True, exist_ok=True)
    page.write_text(render(found))


def losses(figures: list[Figure]) -> list[tuple[Figure, Figure]]:
    """(ours, the best other) for each case and metric with a limit to which another configuration comes nearer."""
    found = []
    for mine in figures:
        if mine.column != "ours" or mine.bound is None:
            continue
        others = [
            one
            for one in figures
            if (one.bench, one.case, one.metric) == (mine.bench, mine.case, mine.metric)
            and one.bound is not None
            and one.column.split("-")[0] not in NO_RIVALS
        ]
        best = min(others, key=_distance, default=None)
        if best and _distance(best) < _distance(mine) and tables.number(best.value) != tables.number(mine.value):
            found.append((mine, best))
    return found


def _distance(figure: Figure) -> float:
    """How far from the limit; less than a limit on memory is no distance."""
    beyond = figure.value - (figure.bound or 0.0)
    return max(0.0, beyond) if figure.unit in MOST else abs(beyond)


def _drawn(text: str, plots: list[str]) -> str:
    """The text without plots of what is not measured yet."""
    return PLOT.sub(lambda match: match[0] if match[1] in plots else "", text)


def _head(found: Summary) -> str:
    runs = sum(found.runs.values())
    file = f"[benchmarks/{summary.FILE}](benchmarks/{summary.FILE})"
    return (
        "# Benchmarks\n\n"
        "Scheduling that is measured: real schedulers on published traces, our configuration beside others' defaults.\n"
        f"`bin/trainyard bench page` writes this page from {file}; don't edit it.\n"
        f"trainyard {found.trainyard}, {found.made}: {runs:,} runs, {minutes_text(found.seconds)} of measuring.\n"
    )


def _short(found: Summary) -> str:
    """The first figure of every bench, in its first cases: defaults, ours, limit."""
    rows = []
    for name in found.runs:
        figures = found.of(name)
        metric = figures[0].metric if figures else ""
        for case in tables.cases([one for one in figures if (one.metric, one.column) == (metric, "ours")])[:CASES]:
            cells = [tables.find(figures, case, column, metric) for column in SHORT]
            limit = next((one.bound for one in cells if one and one.bound is not None), None)
            ends = [tables.cell(one) for one in cells] + [tables.LACKING if limit is None else tables.number(limit)]
            rows.append([f"{name}: {case}", f"{metric}, {figures[0].unit}", *ends])
    if not rows:
        return ""
    return "## In short\n\n" + tables.markdown(["case", "figure", *(f"`{name}`" for name in SHORT), "limit"], rows)


def _environment(found: Summary) -> str:
    programs = ", ".join(f"{PROGRAMS.get(name, name)} {said.lstrip('v')}" for name, said in found.programs.items())
    machines = "; ".join(found.machines)
    counts = ", ".join(f"{name} {done} of {found.planned[name]}" for name, done in found.runs.items())
    failed = "".join(f"\n- `{name}`" for name in found.failed)
    return f"## Machine and programs\n\n{machines}. {programs}.\n\nRuns measured, of those planned: {counts}.\n" + (
        f"\nRuns that failed and are in no figure:\n{failed}\n" if failed else ""
    )


def _configurations(found: Summary) -> str:
    lines = ["## Configurations\n", "| name | what | digest |", "|---|---|---|"]
    lines += [f"| `{name}` | {said['label']} | `{said['digest']}` |" for name, said in found.columns.items()]
    note = "\nA label that begins with … changes one thing of the configuration above it that does not.\n"
    return "\n".join(lines) + "\n" + (note if any("…" in said["label"] for said in found.columns.values()) else "")


def _losses(found: Summary) -> str:
    rows = [
        [
            f"{mine.bench}: {mine.case}",
            f"{mine.metric}, {mine.unit}",
            tables.cell(mine),
            f"`{best.column}`",
            tables.cell(best),
            tables.number(mine.bound or 0.0),
        ]
        for mine, best in losses(found.figures)
    ]
    title = "## Where ours loses\n\n"
    if not rows:
        return title + "In no case measured does another configuration come nearer to a limit than ours.\n"
    table = tables.markdown(["case", "figure", "ours", "better", "its figure", "limit"], rows)
    return title + "Where another configuration comes nearer to a limit than ours, by the mean:\n\n" + table


def _repeat(found: Summary) -> str:
    lines = [
        "## Measure it yourself\n",
        "    make bench              # a part of it, under 15 minutes on 2 cores; results in out/bench/",
        "    make bench FULL=1       # everything; hours. Stopped and run again, it goes on where it stopped",
        "    bin/trainyard bench list              # benches, cases and configurations",
    ]
    own = [one for one in found.figures if one.command.startswith("bin/trainyard")]
    firsts = {figure.bench: figure.command for figure in reversed(own)}
    lines += [f"    {firsts[name]}" for name in found.runs if name in firsts]
    text = (
        "\nThe command of every figure stands in the summary. Traces are read from `$TRAINYARD_DATA`, else fetched once"
        " from\ntheir sources below and checked. Schedulers break ties at random, so figures may differ in their last"
        " digits.\n"
    )
    return "\n".join(lines) + "\n" + text


def _data() -> str:
    lines = ["## Data\n", "| trace | what | from | licence |", "|---|---|---|---|"]
    return "\n".join([*lines, *(f"| {' | '.join(row)} |" for row in (OPENB, PHILLY))]) + "\n" + LEFT_OUT
