"""Plots of single measurements, made of their figures: what a decision or a guide shows."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from trainyard_dev.bench import plots
from trainyard_dev.bench.results import Figure

ARGO = {
    "held_mib": ("argo-teams-held.svg", "Memory of idle controllers of Argo", "MiB on one node"),
    "together_s": ("argo-teams-together.svg", "A step, all teams at once", "seconds a step"),
}
SIZES = {"used": "CPU used of CPU asked for", "slower": "time taken, of that alone"}
MOST_ROWS, ONE = "32 rows", "1 connection"


def argo(figures: Sequence[Figure], folder: Path) -> None:
    """A controller of Argo for all teams beside one for each."""
    for metric, (file, title, unit) in ARGO.items():
        plots.bars(folder / file, _groups([one for one in figures if one.metric == metric]), title=title, y=unit)


def sizes(figures: Sequence[Figure], folder: Path) -> None:
    """What is used with the slowdown beside it."""
    groups = {
        title: {one.column: (100 * one.value,) for one in figures if one.metric == metric}
        for metric, title in SIZES.items()
    }
    cores = figures[0].case
    plots.bars(folder / "sizes.svg", groups, title=f"What pods ask for, and what comes of it: {cores}", y="%")


def serving(figures: Sequence[Figure], folder: Path) -> None:
    """The medians of a large request, one at a time; `figures` are of one file."""
    medians = [one for one in figures if one.metric == "p50_ms" and one.case.endswith(f"{MOST_ROWS}, {ONE}")]
    groups: dict[str, dict[str, tuple[float]]] = {}
    for one in medians:
        groups.setdefault(one.case.rpartition(f", {MOST_ROWS}")[0].replace(", ", ",\n"), {})[one.column] = (one.value,)
    title = f"A request of {MOST_ROWS.split()[0]} images, one at a time: half are answered within"
    plots.bars(folder / f"{figures[0].bench}.svg", groups, title=title, y="ms", log_y=True)


def _groups(figures: Sequence[Figure]) -> dict[str, dict[str, tuple[float]]]:
    groups: dict[str, dict[str, tuple[float]]] = {}
    for one in figures:
        groups.setdefault(one.case, {})[one.column] = (one.value,)
    return groups
