"""Lays out the timeline of a run, one SVG: a lane for each stage and job, coloured phases, a time axis in seconds.

A cold run spends most of its time on images, which would squeeze the jobs into slivers. So when the jobs (lanes with a
dot, such as ``train.cpu``) take a small part of the run, they get a second, zoomed panel, marked in the first.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from markupsafe import Markup

from trainyard_dev.report import palette, templates
from trainyard_dev.report.model import Span
from trainyard_dev.report.plain import duration

WIDTH, GUTTER, RIGHT = 1080, 168, 84
ROW, BAR, AXIS, TITLE, GAP = 26, 18, 26, 30, 26
CHAR = 6.7  # widest average character of the 12-pixel label font, pixels
MARK = 6
ZOOM_BELOW = 0.5  # the share of the run below which jobs get their own panel
STEPS = (0.1, 0.2, 0.5, 1, 2, 5, 10, 15, 20, 30, 60, 120, 300, 600, 1200, 1800, 3600, 7200, 14400, 43200, 86400)
GRAIN = "Queued to done come from Kubernetes timestamps with a grain of 1 s: a phase may be off by 1 s at each end."


@dataclass(frozen=True)
class Lane:
    """One lane: its name, its rows of spans that don't overlap within a row, and its position in the panel."""

    name: str
    rows: list[list[Span]]
    y: int


@dataclass(frozen=True)
class Panel:
    """Lanes over the window ``start``..``end`` (Unix seconds); ``band`` is the window that is zoomed below."""

    title: str
    lanes: list[Lane]
    start: float
    end: float
    band: tuple[float, float] | None = None
    y: int = 4

    @property
    def bottom(self) -> int:
        return TITLE + sum(len(lane.rows) for lane in self.lanes) * ROW + 6

    def x(self, moment: float) -> float:
        inside = min(max(moment, self.start), self.end)
        return GUTTER + (inside - self.start) / (self.end - self.start) * (WIDTH - GUTTER - RIGHT)

    def wide(self, span: Span) -> float:
        return max(2.0, self.x(span.end) - self.x(span.start))

    def text(self, span: Span) -> str:
        """The part of the label that fits into the span's bar."""
        took = duration(span.seconds)
        texts = (f"{span.phase} {took}", span.phase, took)
        return next((text for text in texts if len(text) * CHAR + 10 <= self.wide(span)), "")

    def edge(self, row: Sequence[Span], colours: dict[str, str]) -> float:
        """The end of a row's last bar or mark."""
        return max(
            self.x(span.start) + (self.wide(span) if span.seconds and colours[span.phase] else MARK) for span in row
        )


def document(spans: Sequence[Span], started: float, ended: float) -> str:
    """The timeline as a separate SVG file."""
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + str(render(spans, started, ended))


def render(spans: Sequence[Span], started: float, ended: float) -> Markup:
    """The timeline as an ``<svg>`` element, to stand alone or inside a page."""
    panels: list[Panel] = []
    top = 4
    for panel in _panels(spans, started, ended):
        panels.append(replace(panel, y=top))
        top += panel.bottom + AXIS + GAP
    drawn = [span.phase for panel in panels for lane in panel.lanes for row in lane.rows for span in row]
    colours = palette.colours(sorted(drawn, key=lambda phase: phase != "jobs"))
    moments = {span.phase for span in spans} - {span.phase for span in spans if span.seconds} - {"jobs"}
    top += 0 if panels else 40
    legend = _legend(colours, moments, top)
    return templates.render(
        "timeline.svg",
        panels=panels,
        colours=colours,
        legend=legend,
        zero=started,
        width=WIDTH,
        height=max((key.y for key in legend), default=top + 4) + 46,
        gutter=GUTTER,
        right_edge=WIDTH - RIGHT,
        top=TITLE,
        row=ROW,
        bar=BAR,
        mark=MARK,
        char=CHAR,
        name_fits=int((GUTTER - 24) / CHAR),
        ticks=ticks,
        grain=GRAIN,
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
    result, y = [], TITLE
    for name, members in by_name.items():
        rows: list[list[Span]] = []
        for span in members:
            row = next((r for r in rows if r[-1].end <= span.start + 1e-6), None)
            if row is None:
                rows.append([span])
            else:
                row.append(span)
        result.append(Lane(name, rows, y))
        y += len(rows) * ROW
    return result


def ticks(start: float, end: float, most: int = 9) -> list[float]:
    """Round moments between ``start`` and ``end`` (seconds), at most ``most``."""
    step = next((s for s in STEPS if (end - start) / s <= most - 1), None)
    if step is None:
        step = STEPS[-1] * max(1, -(-int(end - start) // (STEPS[-1] * (most - 1))))
    first = int(-(-start // step))
    return [round(i * step, 3) for i in range(first, int(end // step) + 1)]


@dataclass(frozen=True)
class Key:
    """A phase in the legend, at its position; ``is_moment``: it is drawn as a mark."""

    phase: str
    colour: str
    x: float
    y: int
    is_moment: bool


def _legend(colours: dict[str, str], moments: set[str], top: int) -> list[Key]:
    """All phases, wrapped to the width; ``moments`` are those drawn only as marks."""
    keys, x, y = [], 12.0, top + 4
    for phase, colour in colours.items():
        width = 22 + len(phase) * CHAR + 18
        if x + width > WIDTH:
            x, y = 12.0, y + 22
        keys.append(Key(phase, colour, x, y, not colour or phase in moments))
        x += width
    return keys
