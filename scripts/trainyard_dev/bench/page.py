"""The page docs/benchmarks.md: made from the summary alone, so that `make verify` can compare it."""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from trainyard.paths import ROOT
from trainyard_dev.bench import configurations, fairness, gangs, packing, registry, serving, sources, summary, tables
from trainyard_dev.bench.kfp import draw as draw_kfp
from trainyard_dev.bench.results import Figure, ranges
from trainyard_dev.bench.summary import Summary

PAGE = ROOT / "docs" / "benchmarks.md"
# The plots drawn of each file, for this page and the guides to serving and kfp.
DRAW = {
    "packing": packing.draw, "gangs": gangs.draw, "fairness": fairness.draw, "serving-gpu": serving.draw,
    "kfp": draw_kfp,
}  # fmt: skip

SHORT = ("kube-default", "kube-tuned", "volcano-default", "ours")
CASES = 2  # of a bench in the short table
NO_RIVALS = ("ours", configurations.RAW)  # variants of ours; bindings without a scheduler, which are a limit themselves
MOST = ("MiB",)  # units whose limit is an upper bound; that of other units is a goal

METHOD = """## How it is measured

etcd, kube-apiserver and one scheduler at a time run as real processes. Nodes and pods are objects on that API server,
without kubelet or containers. The harness does the rest: it creates the pods and PodGroups of a trace, marks a pod as
running, and removes it at its end. Every scheduler gets the same nodes, pods, requests and order, and no webhook. Each
configuration sets its own taint on GPU nodes. So a figure shows the scheduler's decisions only, and excludes the time
for images, data and start-up.

- **Virtual time.** The clock jumps to the next arrival or end of a job, then waits until the scheduler's own counters
  show that it has nothing left to do. Results don't depend on the machine's speed. Only throughput is
  measured in real time: compare its figures with each other, not with those of another machine.
- **Seeds.** A figure is the mean over its seeds, followed by the lowest and the highest in brackets if they differ.
  Each section starts with its seeds: rows with other seeds had other work and compare only roughly. We chose settings
  with seeds 42 to 45 of the same traces, and packing weights by an offline replay of the score. We report seeds from 1
  upward, so only the draw is new.
- **Limits.** A known limit, which no scheduler can beat, is next to the figure: a bound, zero, or a minimum. Closer to
  the limit is better; memory only has to stay below its limit.
- **Our configuration is rendered by the chart** with `charts/trainyard/overlays/packed.yaml`: the taint of GPU nodes is
  `PreferNoSchedule`, and `gpu.reserve` is 12 cores and 48 GiB, which 1,046 of openb's 1,213 GPU nodes have for each of
  their GPUs. Without these values the taint is `NoSchedule` and nothing is reserved, which keeps pods without GPUs off
  GPU nodes: with 0.2.0, half of these pods were refused on `default@0.25`. The harness passes the chart's ConfigMap and
  flags to the scheduler. Only the period between rounds is shorter, except for throughput, which uses the chart's
  period. `make verify` fails if the rendered configuration was neither measured nor passed by `bench gate`.
- **Changed defaults of other systems.** kube-scheduler and Kueue may send 2,000 requests a second, the default of
  Volcano's scheduler (their default: 50), and kube-scheduler retries after at most one second (default: 10). Volcano's
  controllers keep their default of 50 in `volcano-default`; the chart sets 500. The digest covers none of these.
  For all configurations, etcd and the API server collect garbage less often than by default (`GOGC=400`).
"""

ALIBABA, FGD, MURI = ("alibaba/clusterdata", "hkust-adsl/kubernetes-scheduler-simulator", "Rivendile/Muri")
OPENB = (
    "openb",
    "Alibaba's GPU cluster of 2023: 1,523 nodes, 6,212 GPUs, lists of pods",
    ALIBABA,
    "`cluster-trace-gpu-v2023/csv`",
    f"none stated there; the same files are in {FGD} under Apache-2.0",
)
PHILLY = (
    "Philly",
    "jobs of two virtual clusters of Microsoft's Philly trace, as prepared for Muri (SIGCOMM'22)",
    MURI,
    "`simulator/trace-data`",
    "Apache-2.0; the trace itself CC BY 4.0",
)
CONFIGURED = """
`raw` is a limit: it binds each pod to the next node in turn, without any checks. The digest covers the parsed
configuration, flags, environment and taints. `bin/trainyard bench config NAME` prints a configuration.
"""
REPEAT = """
`docs/benchmarks/*.csv` has the command or source of every figure. The harness reads traces from `$TRAINYARD_DATA`, or
downloads them once from the sources below and compares their SHA-256 with `scripts/trainyard_dev/bench/sources.py`.
Schedulers break ties at random, so figures differ slightly from run to run, and a lot if a tie decides on a deadlock
or an eviction. Throughput repeats the same load: its brackets show the machine's noise.
"""
LEFT_OUT = """
Packing omits openb's pods that ask for a fractional GPU, so its figures are not comparable with published tables for
the whole lists.
"""


def render(found: Summary) -> str:
    """The page's text."""
    benches = [name for name in registry.BENCHES if found.of(name)]
    stale = summary.outdated(found)
    parts = [_head(found), _short(found), METHOD, _configurations(found)]
    for name in benches:
        bench, figures = registry.load(name), found.of(name)
        head = f"{_stale(figures, stale)}{_measured_on(found, name)}\n\n{_seeds(figures)}"
        parts.append(f"## {bench.TITLE}\n\n{head}\n\n{bench.section(figures).strip()}\n")
    parts += [_losses(found), _repeat(found), _data()]
    return "\n".join(filter(None, parts))


def _stale(figures: list[Figure], stale: Sequence[str]) -> str:
    """Names a section's configurations that the chart has changed since they were measured."""
    names = [name for name in stale if any(figure.column == name for figure in figures)]
    if not names:
        return ""
    listed = ", ".join(f"`{name}`" for name in names)
    return f"> **Stale:** the chart's {listed} changed since this was measured; `bench gate` has passed.\n\n"


def _measured_on(found: Summary, bench: str) -> str:
    """States the versions with which the figures of a bench were measured, and which of them differ in this tree."""
    versions: dict[str, dict[str, None]] = {}
    for one in (found.sources[figure.id] for figure in _measured(found.of(bench))):
        where = f"{one.day} (commit {one.commit[:8]}), {one.machine}"
        versions.setdefault(where, {}).update(dict.fromkeys(one.versions.split(", ")))
    said = "; ".join(f"{where}: {', '.join(of)}" for where, of in versions.items())
    moved = summary.moved(found, bench)
    return f"Measured on {said}." + (f" **This tree has {', '.join(moved)}.**" if moved else "")


def draw(folder: Path) -> list[str]:
    """Draws all plots of the published files; returns their names."""
    for name, plot in DRAW.items():
        plot(summary.read(benches=[name]).figures, folder)
    return sorted(file.name for file in folder.glob("*.svg"))


def write(found: Summary, page: Path) -> None:
    """Writes the page."""
    page.parent.mkdir(parents=True, exist_ok=True)
    page.write_text(render(found))


def losses(figures: list[Figure]) -> list[tuple[Figure, Figure]]:
    """Pairs (ours, best other) for each case and metric where another configuration comes nearer to the limit.

    Where a case has no `ours`, its best variant is compared.
    """
    found = []
    for mine in _ours(figures):
        others = [
            one
            for one in figures
            if (one.bench, one.case, one.metric) == (mine.bench, mine.case, mine.metric)
            and _compared(one)
            and one.column.split("-")[0] not in NO_RIVALS
        ]
        best = min(others, key=_distance, default=None)
        if best and _distance(best) < _distance(mine) and tables.number(best.value) != tables.number(mine.value):
            found.append((mine, best))
    return found


def _ours(figures: list[Figure]) -> list[Figure]:
    """The figures that represent ours in comparisons."""
    alike: dict[tuple[str, str, str], list[Figure]] = {}
    for one in figures:
        if one.column.split("-")[0] == "ours" and _compared(one):
            alike.setdefault((one.bench, one.case, one.metric), []).append(one)
    plain = {(one.bench, one.case) for one in figures if one.column == "ours"}
    found = []
    for (bench, case, _), variants in alike.items():
        said = [one for one in variants if one.column == "ours"] if (bench, case) in plain else variants
        found += sorted(said, key=_distance)[:1]
    return found


def _compared(figure: Figure) -> bool:
    """Whether the figure has a limit, or its bench defines less as better."""
    return figure.bound is not None or figure.metric in registry.load(figure.bench).LESS


def _limit(figure: Figure) -> str:
    return tables.LACKING if figure.bound is None else tables.number(figure.bound)


def _distance(figure: Figure) -> float:
    """The distance from the limit; less than a limit on memory counts as none."""
    beyond = figure.value - (figure.bound or 0.0)
    return max(0.0, beyond) if figure.unit in MOST else abs(beyond)


def _seeds(figures: list[Figure]) -> str:
    """The seeds of every case, and those of configurations that have others."""
    said = []
    own = _measured(figures)
    for case in tables.cases(own):
        of = {one.column: ranges(one.seeds) for one in own if one.case == case}
        most, _ = Counter(of.values()).most_common(1)[0]
        others = "; ".join(f"`{column}` {seeds}" for column, seeds in of.items() if seeds != most)
        said.append(f"`{case}` {most}" + (f" ({others})" if others else ""))
    return f"Seeds: {', '.join(said)}."


def _measured(figures: list[Figure]) -> list[Figure]:
    """The figures without those that others have published."""
    return [one for one in figures if one.command.startswith("bin/trainyard")]


def _called(figure: Figure) -> str:
    """The name of the figure's metric in its section."""
    return registry.load(figure.bench).HEADINGS.get(figure.metric, f"{figure.metric}, {figure.unit}")


def _head(found: Summary) -> str:
    files = ", ".join(f"[{name}](benchmarks/{name}.csv)" for name in registry.BENCHES if found.of(name))
    return (
        "# Benchmarks\n\n"
        "After this page you can compare our scheduling with others' on published traces, losses included.\n"
        f"`bin/trainyard bench page` writes this page from the figures of {files}; don't edit it.\n"
        "Each row of these files has its versions, overlay, machine, commit and command.\n"
    )


def _short(found: Summary) -> str:
    """The short table: first metric and SHORT ones of every bench, in its first cases: defaults, ours, limit."""
    rows = []
    for name in registry.BENCHES:
        figures = found.of(name)
        for metric in (figures[0].metric, *registry.load(name).SHORT) if figures else ():
            for case in tables.cases([one for one in figures if (one.metric, one.column) == (metric, "ours")])[:CASES]:
                cells = [tables.find(figures, case, column, metric) for column in SHORT]
                some = [one for one in cells if one]
                limit = _limit(some[0])
                rows.append([f"{name}: {case}", _called(some[0]), *map(tables.cell, cells), limit])
    if not rows:
        return ""
    note = "The main figures of each bench; its section explains them. Closer to the limit is better.\n\n"
    head = ["case", "figure", *(f"`{name}`" for name in SHORT), "limit"]
    return "## In short\n\n" + note + tables.markdown(head, rows)


def _configurations(found: Summary) -> str:
    digests = {one.column: found.sources[one.id].digest for one in found.figures}
    lines = ["## Configurations\n", "| name | what | digest |", "|---|---|---|"]
    for name, one in configurations.configurations().items():
        if name in digests and name != configurations.RAW:
            lines.append(f"| `{name}` | {one.label} | `{digests[name]}` |")
    return "\n".join(lines) + "\n" + CONFIGURED


def _losses(found: Summary) -> str:
    rows = [
        [
            f"{mine.bench}: {mine.case}",
            _called(mine),
            tables.cell(mine) + (f" (`{mine.column}`)" if mine.column != "ours" else ""),
            f"`{best.column}`",
            tables.cell(best),
            _limit(mine),
            " against ".join(dict.fromkeys((ranges(mine.seeds), ranges(best.seeds)))),
        ]
        for mine, best in losses(found.figures)
    ]
    title = "## Where ours loses\n\n"
    if not rows:
        return title + "In no measured case is another configuration closer to a limit than ours.\n"
    table = tables.markdown(["case", "figure", "ours", "better", "its figure", "limit", "seeds"], rows)
    return (
        title
        + "Cases in which another configuration's mean is closer to the limit than that of `ours`, or in which it\n"
        + "refuses fewer 8-GPU pods. Variants of `ours` count only if a case has no `ours`. Packing lists refusals of\n"
        + "smaller pods: refusing large pods leaves room for small ones. If seeds differ, they may be the reason.\n\n"
        + table
    )


def _repeat(found: Summary) -> str:
    lines = [
        "## Measure it yourself\n",
        "    make bench              # a part of it, under 15 minutes on 2 cores; results in out/bench/",
        "    make bench FULL=1       # everything; about a day. If stopped, run it again to continue",
        "    bin/trainyard bench list --full       # benches, cases and configurations",
    ]
    firsts = {figure.bench: figure.command for figure in reversed(_measured(found.figures))}
    lines += [f"    {firsts[name]}" for name in registry.BENCHES if name in firsts]
    return "\n".join(lines) + "\n" + REPEAT


def _data() -> str:
    lines = ["## Data\n", "| trace | what | from | licence |", "|---|---|---|---|"]
    for name, what, repository, folder, licence in (OPENB, PHILLY):
        at = ", ".join(commit[:8] for commit in sources.commits(repository))
        origin = f"[{repository}](https://github.com/{repository}), {folder}, at {at}"
        lines.append(f"| {name} | {what} | {origin} | {licence} |")
    return "\n".join(lines) + "\n" + LEFT_OUT
