"""Draws a panel of a dashboard: lines over time, bars of the last numbers, or one number."""

from collections.abc import Sequence
from itertools import groupby
from typing import Any

from markupsafe import Markup

from trainyard_dev.report import palette, templates, units
from trainyard_dev.report.plain import duration

WIDTH, HEIGHT = 520, 170
LEFT, RIGHT, TOP, BOTTOM = 74, 10, 10, 24
ROW, NAME_W, NUMBER_W = 22, 190, 92
CHAR = 6.4  # widest average character of the labels, pixels
Values = Sequence[float | None]


def colour(index: int) -> str:
    """The colour of a panel's series by its index."""
    return palette.FREE[index % len(palette.FREE)]


def last(values: Values) -> float | None:
    """The last number of a series, or None."""
    return next((value for value in reversed(values) if value is not None), None)


def last_value(one: dict[str, Any], unit: str) -> str:
    """The last number of a series with its unit."""
    number = last(one["values"])
    return "no number" if number is None else units.shown(number, unit)


def lines(series: Sequence[dict[str, Any]], unit: str, step: float) -> Markup:
    """All series over time as one `<svg>`; `step` is the seconds between two numbers. A gap stays a gap."""
    found = [value for one in series for value in one["values"] if value is not None]
    low, high = min([0.0, *found]), max([0.0, *found])  # the scale always includes zero
    high = high if high > low else low + 1.0
    count = max((len(one["values"]) for one in series), default=2)
    across, down = WIDTH - LEFT - RIGHT, HEIGHT - TOP - BOTTOM

    def stretches(values: Values) -> list[list[tuple[float, float]]]:
        """The points of each stretch without a gap."""
        runs = groupby(enumerate(values), key=lambda point: point[1] is None)
        return [
            [
                (round(LEFT + across * at / max(1, count - 1), 1),
                 round(TOP + down * (1 - (value - low) / (high - low)), 1))
                for at, value in run if value is not None
            ]
            for gap, run in runs if not gap
        ]  # fmt: skip

    return templates.render(
        "panel.svg",
        width=WIDTH,
        height=HEIGHT,
        said="; ".join(f"{one['name']}: {last_value(one, unit)}" for one in series),
        left=LEFT,
        right=WIDTH - RIGHT,
        scale=[(TOP + down * (1 - part), units.shown(low + (high - low) * part, unit)) for part in (0.0, 0.5, 1.0)],
        ago=duration((count - 1) * step),
        lines=[(one["name"], colour(index), stretches(one["values"])) for index, one in enumerate(series)],
        bars=[],
    )


def bars(series: Sequence[dict[str, Any]], unit: str) -> Markup:
    """The last number of each series as a bar, all with the same scale."""
    sizes = [abs(last(one["values"]) or 0.0) for one in series]
    scale = (WIDTH - NAME_W - NUMBER_W) / (max(sizes, default=0.0) or 1.0)
    return templates.render(
        "panel.svg",
        width=WIDTH,
        height=max(ROW, len(series) * ROW),
        said="",
        left=NAME_W,
        tall=ROW,
        fits=int(NAME_W / CHAR),
        lines=[],
        bars=[
            (str(one["name"]), colour(index), size * scale, last_value(one, unit))
            for index, (one, size) in enumerate(zip(series, sizes, strict=True))
        ],
    )
