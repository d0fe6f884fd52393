"""What kfp costs on the test cluster, which the check `pipelines.kfp-cost` measures: the figures and their plot."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from trainyard_dev.bench import plots
from trainyard_dev.bench.results import Figure

FIRST, CACHED, MANY = "until a first step\nruns", "mnist from\nthe cache", "500 steps"
GOALS = {FIRST: 6.0, CACHED: 2.0}
RATIO = 1.3  # kfp's time for many steps, at most, in that of a bare workflow
BARE = "bare workflow"


def figures(measured: Mapping[tuple[str, str], float]) -> list[Figure]:
    """One for each case and column, in seconds."""
    goals = GOALS | {MANY: RATIO * measured[MANY, BARE]}
    command = "make kfp-conformance"
    return [
        Figure.once("kfp", case, column, "seconds", value, "s", command, goals[case])
        for (case, column), value in measured.items()
    ]


def draw(figures: Sequence[Figure], folder: Path) -> None:
    """A bar for each figure, and the goals."""
    groups: dict[str, dict[str, tuple[float]]] = {}
    for one in figures:
        groups.setdefault(one.case, {})[one.column] = (one.value,)
    goals = {one.case: one.bound for one in figures if one.bound}
    plots.bars(folder / "kfp.svg", groups, title="What kfp costs; limit: the goal", y="s", limit=goals, log_y=True)
