"""Draws the timeline of a run as one SVG: a lane for each stage and job, coloured phases, a time axis in seconds.

A cold run spends most of its time on images, which would squeeze the jobs into slivers. So when the jobs (lanes with a
dot, such as ``train.cpu``) take a small part of the run, they get a second, zoomed panel, marked in the first.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

from trainyard_dev.report import palette
from trainyard_dev.report.assets import text as asset
from trainyard_dev.report.model import Span
from trainyard_dev.report.plain import clean, duration

WIDTH, GUTTER, RIGHT = 1080, 168, 84
ROW, BAR, AXIS, TITLE, GAP = 26, 18, 26, 30, 26
CHAR = 6.7  # widest average character of the 12-pixel label font, pixels
MARK = 6
ZOOM_BELOW = 0.5  # the share of the run below which jobs get a panel of their own
STEPS = (0.1, 0.2, 0.5, 1, 2, 5, 10, 15, 20, 30, 60, 120, 300, 600, 1200, 1800, 3600, 7200, 14400, 43200, 86400)
GRAIN = "Queued to done come from Kubernetes timestamps with a grain of 1 s: a phase may be off by 1 s at each end."


@dataclass(frozen=True)
class Lane:
    """One lane: its name and its rows of spans that don't overlap within a row."""

    name: str
    rows: list[list[Span]]


@dataclass(frozen=True)
class Panel:
    """Lanes over the window ``start``..``end`` (Unix seconds); ``band`` is the window that is zoomed below."""

    title: str
    lanes: list[Lane]
    start: float
    end: float
    band: tuple[float, float] | None = None

    @property
    def height(self) -> int:
        return TITLE + sum(len(lane.rows) for lane in self.lanes) * ROW + 6 + AXIS

    def x(self, moment: float) -> float:
        inside = min(max(moment, self.start), self.end)
        return GUTTER + (inside - self.start) / (self.end - self.start) * (WIDTH - GUTTER - RIGHT)


def document(spans: Sequence[Span], started: float, ended: float) -> str:
    """The timeline as an SVG file of its own."""
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + render(spans, started, ended) + "\n"


def render(spans: Sequence[Span], started: float, ended: float) -> str:
    """The timeline as an ``<svg>`` element, to stand alone or inside a page."""
    panels = _panels(spans, started, ended)
    drawn = [span.phase for panel in panels for lane in panel.lanes for row in lane.rows for span in row]
    colours = palette.colours(sorted(drawn, key=lambda phase: phase != "jobs"))
    parts: list[str] = []
    top = 4
    for panel in panels:
        parts.append(f'<g transform="translate(0 {top})">{_panel(panel, colours, started)}</g>')
        top += panel.height + GAP
    if not panels:
        parts.append(f'<text class="muted" x="12" y="{top + 20}">No time was recorded in this run.</text>')
        top += 40
    moments = {span.phase for span in spans} - {span.phase for span in spans if span.seconds} - {"jobs"}
    legend, height = _legend(colours, moments, top)
    notes = f'<text class="muted" x="12" y="{top + height + 12}">{escape(GRAIN)}</text>' if panels else ""
    total = top + height + 24
    lanes = ", ".join(dict.fromkeys(lane.name for panel in panels for lane in panel.lanes)) or "none"
    size = f'viewBox="0 0 {WIDTH} {total}" width="{WIDTH}" height="{total}"'
    return (
        f'<svg class="ty" xmlns="http://www.w3.org/2000/svg" {size} role="img" aria-labelledby="ty-title ty-desc">'
        f'<title id="ty-title">Timeline of the run</title>'
        f'<desc id="ty-desc">{_text(f"Time in seconds since the start. Lanes: {lanes}.")}</desc>'
        f"<style>{asset('timeline.css')}</style>"
        '<defs><pattern id="ty-hatch" width="7" height="7" patternUnits="userSpaceOnUse" patternTransform="rotate(45)">'
        '<rect width="2.4" height="7" fill="#fff" fill-opacity=".15"/></pattern></defs>'
        f'<rect class="page" width="{WIDTH}" height="{total}"/>{"".join(parts)}{legend}{notes}</svg>'
    )


def _panels(spans: Sequence[Span], started: float, ended: float) -> list[Panel]:
    if not spans:
        return []
    start = min(started, *(s.start for s in spans))
    end = max(ended, start + 0.1, *(s.end for s in spans))
    jobs = [s for s in spans if "." in s.lane]
    stages = [s for s in spans if "." not in s.lane]
    whole = "Whole run"
    if not jobs or not stages:
        return [Panel(whole, _lanes(spans), start, end)]
    first, last = min(s.start for s in jobs), max(s.end for s in jobs)
    if last - first >= (end - start) * ZOOM_BELOW:
        return [Panel(whole, _lanes([*stages, *jobs]), start, end)]
    margin = max(0.5, (last - first) * 0.02)
    window = (max(start, first - margin), min(end, last + margin))
    lanes = _lanes([*stages, *_hulls(jobs)])
    title = f"Jobs, zoomed in to {first - started:.0f}\u2013{last - started:.0f} s"
    return [Panel(whole, lanes, start, end, band=window), Panel(title, _lanes(jobs), *window)]


def _hulls(jobs: Sequence[Span]) -> list[Span]:
    """One span for each group of job lanes, from its first moment to its last."""
    groups: dict[str, list[Span]] = {}
    for span in jobs:
        groups.setdefault(span.lane.split(".", 1)[0], []).append(span)
    result = []
    for name, members in groups.items():
        count = len({s.lane for s in members})
        low, high = min(s.start for s in members), max(s.end for s in members)
        result.append(Span(name, "jobs", low, high, f"{count} lanes, drawn below"))
    return result


def _lanes(spans: Sequence[Span]) -> list[Lane]:
    """Lanes in the order of their first span's start; overlapping spans of a lane go to further rows."""
    by_name: dict[str, list[Span]] = {}
    for span in sorted(spans, key=lambda s: (s.start, s.end)):
        by_name.setdefault(span.lane, []).append(span)
    result = []
    for name, members in by_name.items():
        rows: list[list[Span]] = []
        for span in members:
            row = next((r for r in rows if r[-1].end <= span.start + 1e-6), None)
            if row is None:
                rows.append([span])
            else:
                row.append(span)
        result.append(Lane(name, rows))
    return result


def ticks(start: float, end: float, most: int = 9) -> list[float]:
    """Round moments between ``start`` and ``end`` (seconds), at most ``most``."""
    step = next((s for s in STEPS if (end - start) / s <= most - 1), None)
    if step is None:
        step = STEPS[-1] * max(1, -(-int(end - start) // (STEPS[-1] * (most - 1))))
    first = int(-(-start // step))
    return [round(i * step, 3) for i in range(first, int(end // step) + 1)]


def _panel(panel: Panel, colours: dict[str, str], zero: float) -> str:
    bottom = panel.height - AXIS
    out = [f'<text class="head" x="12" y="16">{_text(panel.title)}</text>', *_stripes(panel)]
    if panel.band:
        left, right = panel.x(panel.band[0]), panel.x(panel.band[1])
        shape = f'x="{left:.1f}" y="{TITLE - 4}" width="{right - left:.1f}" height="{bottom - TITLE + 4}"'
        out.append(f'<rect class="band" {shape}/>')
    for tick in ticks(panel.start - zero, panel.end - zero):
        x = panel.x(tick + zero)
        out.append(f'<line class="grid" x1="{x:.1f}" x2="{x:.1f}" y1="{TITLE - 4}" y2="{bottom}"/>')
        out.append(f'<text class="tick" x="{x:.1f}" y="{bottom + 16}">{tick:g} s</text>')
    out.append(f'<line class="axis" x1="{GUTTER}" x2="{WIDTH - RIGHT}" y1="{bottom}" y2="{bottom}"/>')
    y = TITLE
    for lane in panel.lanes:
        out.append(_name(lane.name, y + BAR / 2 + 4))
        for row in lane.rows:
            out.append(_row(panel, row, colours, zero, y))
            y += ROW
    return "".join(out)


def _stripes(panel: Panel) -> list[str]:
    """A ground behind every other lane, so that the eye finds a name's bars."""
    out, y = [], TITLE - (ROW - BAR) / 2
    for index, lane in enumerate(panel.lanes):
        height = len(lane.rows) * ROW
        if index % 2 == 0:
            out.append(f'<rect class="stripe" x="0" y="{y}" width="{WIDTH}" height="{height}"/>')
        y += height
    return out


def _name(name: str, y: float) -> str:
    most = int((GUTTER - 24) / CHAR)
    shown = name if len(name) <= most else name[: most - 1] + "\u2026"
    return f'<text class="lane" x="{GUTTER - 12}" y="{y:.1f}">{_text(shown)}<title>{_text(name)}</title></text>'


def _row(panel: Panel, row: list[Span], colours: dict[str, str], zero: float, y: float) -> str:
    out, edge = [], 0.0
    for span in row:
        left, right = panel.x(span.start), panel.x(span.end)
        if span.seconds == 0 or not colours.get(span.phase, ""):
            out.append(_mark(span, left, y + BAR / 2, colours.get(span.phase, ""), zero))
            edge = max(edge, left + MARK)
            continue
        width = max(2.0, right - left)
        out.append(_bar(span, left, width, y, colours[span.phase], zero))
        edge = max(edge, left + width)
    total = duration(sum(s.seconds for s in row))
    if edge + 6 + len(total) * CHAR <= WIDTH:
        out.append(f'<text class="total" x="{edge + 6:.1f}" y="{y + BAR / 2 + 4:.1f}">{total}</text>')
    return "".join(out)


def _bar(span: Span, left: float, width: float, y: float, colour: str, zero: float) -> str:
    took = duration(span.seconds)
    fits = next((t for t in (f"{span.phase} {took}", span.phase, took) if len(t) * CHAR + 10 <= width), "")
    middle = left + width / 2
    inner = f'<text class="in" x="{middle:.1f}" y="{y + BAR / 2 + 4:.1f}">{_text(fits)}</text>' if fits else ""
    shape = f'x="{left:.1f}" y="{y}" width="{width:.1f}" height="{BAR}" rx="{min(3.0, width / 2):.1f}"'
    hatch = f'<rect {shape} fill="url(#ty-hatch)"/>' if span.phase == "queued" else ""
    return f'<g class="bar">{_tip(span, zero)}<rect {shape} fill="{colour}"/>{hatch}{inner}</g>'


def _mark(span: Span, x: float, y: float, colour: str, zero: float) -> str:
    return f'<g class="bar">{_tip(span, zero)}{_diamond(x, y, colour)}</g>'


def _diamond(x: float, y: float, colour: str) -> str:
    points = f"{x:.1f},{y - MARK} {x + MARK:.1f},{y} {x:.1f},{y + MARK} {x - MARK:.1f},{y}"
    style = f' style="fill:{colour}"' if colour else ""
    return f'<polygon class="mark" points="{points}"{style}/>'


def _tip(span: Span, zero: float) -> str:
    when = f"{span.start - zero:.1f} s"
    if span.seconds:
        when = f"{when} to {span.end - zero:.1f} s ({duration(span.seconds)})"
    label = f"\n{span.label}" if span.label else ""
    return f"<title>{_text(f'{span.lane}: {span.phase}, {when}{label}')}</title>"


def _legend(colours: dict[str, str], moments: set[str], top: float) -> tuple[str, float]:
    """The legend, wrapped to the width, and its height in pixels; ``moments`` are the phases drawn as marks only."""
    out, x, y = [], 12.0, top + 4
    for phase, colour in colours.items():
        width = 22 + len(phase) * CHAR + 18
        if x + width > WIDTH:
            x, y = 12.0, y + 22
        if colour and phase not in moments:
            out.append(f'<rect x="{x:.1f}" y="{y}" width="14" height="14" rx="3" fill="{colour}"/>')
            if phase == "queued":
                out.append(f'<rect x="{x:.1f}" y="{y}" width="14" height="14" rx="3" fill="url(#ty-hatch)"/>')
        else:
            out.append(_diamond(x + 7, y + 7, colour))
        out.append(f'<text class="key" x="{x + 20:.1f}" y="{y + 11.5}">{_text(phase)}</text>')
        x += width
    return "".join(out), y - top + 22


def _text(value: str) -> str:
    return escape(clean(value))
