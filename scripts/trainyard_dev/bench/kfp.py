"""Figures and plot of kfp's cost on the test cluster, as measured by the check `pipelines.kfp-cost`."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from trainyard_dev.bench import plots
from trainyard_dev.bench.results import Figure

FIRST, CACHED, MANY = "first step", "mnist, cached", "500 steps"
GOALS = {FIRST: 6.0, CACHED: 2.0}  # seconds
RATIO = 1.3  # of many steps, to a bare workflow's
BARE = "bare workflow"


def figures(measured: Mapping[tuple[str, str], float]) -> list[Figure]:
    """Returns a figure for each case and column, in seconds; a bare workflow's has no goal."""
    goals = GOALS | {MANY: RATIO * measured[MANY, BARE]}
    return [
        Figure.once("kfp", case, column, "s", value, "s", "make kfp-cost", None if column == BARE else goals[case])
        for (case, column), value in measured.items()
    ]


def draw(figures: Sequence[Figure], folder: Path) -> None:
    """Draws each figure in percent of its goal."""
    goals = {one.case: one.bound for one in figures if one.bound}
    groups: dict[str, dict[str, tuple[float]]] = {}
    for one in figures:
        groups.setdefault(one.case, {})[one.column] = (100 * one.value / goals[one.case],)
    limit = dict.fromkeys(groups, 100.0)
    plots.bars(folder / "kfp.svg", groups, title="What kfp costs", y="% of the goal", limit=limit)
