"""Plots in one style, as SVG files that are the same for the same numbers."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import cycle
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.typing import RcKeyType

# Okabe and Ito's colours, which people with colour-blindness tell apart.
PALETTE = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#8C6D31")
LIMIT = "#666666"
# The same configuration has the same colour on every plot.
FIXED = {
    "ours": 0, "kube-default": 1, "kube-tuned": 4, "volcano-default": 2, "ours-order": 3, "ours-reclaim": 5,
    "raw": 6, "kueue": 7, "ours-strict": 3,
}  # fmt: skip
STYLE: dict[RcKeyType, Any] = {
    "figure.facecolor": "white", "axes.facecolor": "white", "savefig.facecolor": "white", "font.family": "sans-serif",
    "font.size": 10, "axes.spines.top": False, "axes.spines.right": False, "axes.grid": True, "grid.color": "#dddddd",
    "grid.linewidth": 0.6, "axes.axisbelow": True, "legend.frameon": False, "lines.linewidth": 1.8,
    "svg.hashsalt": "trainyard", "svg.fonttype": "none", "axes.formatter.useoffset": False, "path.simplify": True,
}  # fmt: skip
SIZE = (8.0, 4.2)  # inches
PATH = re.compile(r' d="[^"]*"')


def bars(
    path: Path, groups: Mapping[str, Mapping[str, Sequence[float]]], *, title: str, y: str,
    limit: Mapping[str, float] | None = None, log_y: bool = False,
) -> None:  # fmt: skip
    """Bars side by side: group -> name -> (value,) or (mean, low, high), the spread drawn as a whisker.

    `limit`: group -> the best that is possible, a dotted line across the group.
    """
    names = list(dict.fromkeys(name for group in groups.values() for name in group))
    width = 0.8 / max(1, len(names))
    with _drawing(path, title, y) as axes:
        colours = _colours(names)
        for index, name in enumerate(names):
            having = [(place, group[name]) for place, group in enumerate(groups.values()) if name in group]
            at = [place - 0.4 + width * (index + 0.5) for place, _ in having]
            heights = [value[0] for _, value in having]
            axes.bar(at, heights, width * 0.92, color=colours[name], label=name)
            spread = [(where, value) for where, (_, value) in zip(at, having, strict=True) if len(value) == 3]
            if spread:
                low = [max(0.0, value[0] - value[1]) for _, value in spread]
                high = [max(0.0, value[2] - value[0]) for _, value in spread]
                middle = [value[0] for _, value in spread]
                axes.errorbar(
                    [where for where, _ in spread], middle, [low, high], fmt="none", ecolor="#333333", elinewidth=1
                )
        label = "limit"
        for place, group in enumerate(groups):
            if limit and group in limit:
                axes.hlines(limit[group], place - 0.45, place + 0.45, colors=LIMIT, linestyles=":", label=label)
                label = "_nolegend_"
        axes.set_xticks(range(len(groups)), list(groups))
        axes.grid(False, axis="x")
        if log_y:
            axes.set_yscale("log")
        if axes.get_legend_handles_labels()[0]:
            axes.legend(loc="upper left", bbox_to_anchor=(1.01, 1.0), borderaxespad=0.0)


def _colours(names: Sequence[str]) -> dict[str, str]:
    """The colour of each name: fixed for known configurations, the free ones in turn for others."""
    found = {name: PALETTE[FIXED[name]] for name in names if name in FIXED}
    free = cycle([colour for colour in PALETTE if colour not in found.values()] or PALETTE)
    return found | {name: next(free) for name in names if name not in FIXED}


@contextmanager
def _drawing(path: Path, title: str, y: str) -> Iterator[Axes]:
    """Axes to draw on; the file is written, whole, when the body ends well."""
    from matplotlib import rc_context
    from matplotlib.backends.backend_svg import FigureCanvasSVG
    from matplotlib.figure import Figure

    path.parent.mkdir(parents=True, exist_ok=True)
    with rc_context(STYLE):
        drawing = Figure(figsize=SIZE, layout="constrained")
        FigureCanvasSVG(drawing)
        axes = drawing.add_subplot()
        axes.set_title(title, loc="left", fontsize=11)
        axes.set_ylabel(y)
        yield axes
        beside = path.with_suffix(".part")
        drawing.savefig(beside, format="svg", metadata={"Date": None, "Creator": None})
        # One line per path: matplotlib writes one per coordinate.
        text = PATH.sub(lambda match: " " + " ".join(match[0].split()), beside.read_text())
        beside.write_text(re.sub(r"\n *</g>", "</g>", text))
        beside.replace(path)
