"""Draws what a panel of a dashboard shows: lines over time, bars of the last numbers, or one number."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape
from typing import Any

from trainyard_dev.report import palette, units
from trainyard_dev.report.plain import clean, duration

WIDTH, HEIGHT = 520, 170
LEFT, RIGHT, TOP, BOTTOM = 74, 10, 10, 24
ROW, NAME_W, NUMBER_W = 22, 190, 92
CHAR = 6.4  # widest average character of the labels, pixels
Values = Sequence[float | None]


def colour(index: int) -> str:
    """The colour of a panel's series by its place."""
    return palette.FREE[index % len(palette.FREE)]


def last(values: Values) -> float | None:
    """The last number of a series, or None."""
    return next((value for value in reversed(values) if value is not None), None)


def lines(series: Sequence[dict[str, Any]], unit: str, step: float) -> str:
    """All series over time as one `<svg>`; `step` is the seconds between two numbers. A gap stays a gap."""
    found = [value for one in series for value in one["values"] if value is not None]
    low, high = _range(found)
    count = max((len(one["values"]) for one in series), default=2)
    out = []
    for part in (0.0, 0.5, 1.0):
        y = TOP + (HEIGHT - TOP - BOTTOM) * (1 - part)
        label = units.shown(low + (high - low) * part, unit)
        out.append(f'<line class="grid" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y:.1f}" y2="{y:.1f}"/>')
        out.append(f'<text class="axis" text-anchor="end" x="{LEFT - 6}" y="{y + 4:.1f}">{_text(label)}</text>')
    ago = f"{duration((count - 1) * step)} ago"
    out.append(f'<text class="tick" x="{LEFT}" y="{HEIGHT - 6}">{ago}</text>')
    out.append(f'<text class="tick" text-anchor="end" x="{WIDTH - RIGHT}" y="{HEIGHT - 6}">now</text>')
    for index, one in enumerate(series):
        out += _line(one, index, count, low, high)
    return _svg("".join(out), HEIGHT, "; ".join(f"{one['name']}: {_of(one, unit)}" for one in series))


def bars(series: Sequence[dict[str, Any]], unit: str) -> str:
    """The last number of each series as a bar, all to one scale."""
    numbers = [last(one["values"]) for one in series]
    most = max((abs(number) for number in numbers if number is not None), default=0.0) or 1.0
    room, out = WIDTH - NAME_W - NUMBER_W, []
    for index, (one, number) in enumerate(zip(series, numbers, strict=True)):
        y = index * ROW + 2
        name = str(one["name"])
        fits = int(NAME_W / CHAR)
        cut = name if len(name) <= fits else name[: fits - 1] + "…"
        label = f"{_text(cut)}<title>{_text(name)}</title>"
        out.append(f'<text class="axis" text-anchor="end" x="{NAME_W - 6}" y="{y + 14}">{label}</text>')
        width = room * abs(number or 0.0) / most
        shape = f'x="{NAME_W}" y="{y}" width="{max(width, 1):.1f}" height="{ROW - 6}" rx="2"'
        out.append(f'<rect class="bar" {shape} fill="{colour(index)}"/>')
        out.append(f'<text class="tick" x="{NAME_W + width + 6:.1f}" y="{y + 14}">{_text(_of(one, unit))}</text>')
    return _svg("".join(out), max(ROW, len(series) * ROW), "")


def _line(one: dict[str, Any], index: int, count: int, low: float, high: float) -> list[str]:
    """A polyline for each stretch without a gap; a number that stands alone is a dot."""
    across, down = WIDTH - LEFT - RIGHT, HEIGHT - TOP - BOTTOM
    tip, out = f"<title>{_text(one['name'])}</title>", []
    for stretch in _stretches(one["values"]):
        points = [
            f"{LEFT + across * at / max(1, count - 1):.1f},{TOP + down * (1 - (value - low) / (high - low)):.1f}"
            for at, value in stretch
        ]
        if len(points) == 1:
            x, _, y = points[0].partition(",")
            out.append(f'<circle class="dot" cx="{x}" cy="{y}" r="2.5" fill="{colour(index)}">{tip}</circle>')
        else:
            out.append(f'<polyline points="{" ".join(points)}" stroke="{colour(index)}">{tip}</polyline>')
    return out


def _stretches(values: Values) -> Iterator[list[tuple[int, float]]]:
    run: list[tuple[int, float]] = []
    for at, value in enumerate(values):
        if value is not None:
            run.append((at, value))
        elif run:
            yield run
            run = []
    if run:
        yield run


def _range(found: Sequence[float]) -> tuple[float, float]:
    """Zero is always in it, and it is never empty."""
    low, high = min([0.0, *found]), max([0.0, *found])
    return (low, high) if high > low else (low, low + 1.0)


def _of(one: dict[str, Any], unit: str) -> str:
    number = last(one["values"])
    return "no number" if number is None else units.shown(number, unit)


def _svg(inside: str, height: int, said: str) -> str:
    label = f' role="img" aria-label="{_text(said)}"' if said else ' role="img"'
    size = f'viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" height="{height}"'
    return f'<svg class="panel" xmlns="http://www.w3.org/2000/svg" {size}{label}>{inside}</svg>'


def _text(value: object) -> str:
    return escape(clean(value))
