"""Metrics of runs as a bar chart in an SVG file: deterministic, and without a library."""

from collections.abc import Sequence
from html import escape

from trainyard.observe.comparison import Facts, Line, number

# Okabe and Ito's palette, which is safe for colour-blind readers.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#8C6D31")
WIDTH, MARGIN, LABEL, VALUE = 760, 16, 190, 90  # pixels
BAR, GAP, HEAD = 18, 5, 30
LONGEST = 28  # characters of a run's name


def draw(runs: Sequence[Facts], lines: Sequence[Line]) -> str:
    """Draws a panel for each metric, with a bar for each run that has the metric. Bars begin at zero."""
    panels = [line for line in lines if line.group == "metrics" and any(_is_number(one) for one in line.values)]
    tall = HEAD + len(runs) * (BAR + GAP)
    height = 2 * MARGIN + HEAD + max(1, len(panels)) * (tall + GAP)
    title = "Metrics of " + ", ".join(run.name for run in runs)
    parts = header(title, WIDTH, height)
    if not panels:
        parts.append(f'<text x="{MARGIN}" y="{MARGIN + HEAD + 20}">None of them has metrics.</text>')
    for at, line in enumerate(panels):
        parts += _panel(runs, line, MARGIN + HEAD + at * (tall + GAP))
    return "\n".join([*parts, "</svg>", ""])


def header(title: str, width: int, height: int) -> list[str]:
    """The first lines of an SVG picture, including its title."""
    return [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img" '
        f'font-family="sans-serif" font-size="12" fill="#222222">',
        f"<title>{escape(title)}</title>",
        f'<rect width="{width}" height="{height}" fill="#ffffff"/>',
        f'<text x="{MARGIN}" y="{MARGIN + 14}" font-size="15" font-weight="bold">{escape(title)}</text>',
    ]


def _panel(runs: Sequence[Facts], line: Line, top: int) -> list[str]:
    values = [float(one) if _is_number(one) else None for one in line.values]
    known = [one for one in values if one is not None]
    low, high = min(0.0, *known), max(0.0, *known)
    left, wide = MARGIN + LABEL, WIDTH - 2 * MARGIN - LABEL - VALUE
    scale = wide / (high - low) if high > low else 0.0
    zero = left - low * scale
    parts = [f'<text x="{MARGIN}" y="{top + 18}" font-weight="bold">{escape(line.name)}</text>']
    for at, (run, value) in enumerate(zip(runs, values, strict=True)):
        y = top + HEAD + at * (BAR + GAP)
        name = run.name if len(run.name) <= LONGEST else run.name[: LONGEST - 1] + "…"
        parts.append(f'<text x="{left - 8}" y="{y + 13}" text-anchor="end">{escape(name)}</text>')
        if value is None:
            parts.append(f'<text x="{zero + 6:.1f}" y="{y + 13}" fill="#777777">none</text>')
            continue
        begin, length = min(zero, zero + value * scale), abs(value) * scale
        colour = COLOURS[at % len(COLOURS)]
        parts.append(f'<rect x="{begin:.1f}" y="{y}" width="{max(length, 1):.1f}" height="{BAR}" fill="{colour}"/>')
        parts.append(f'<text x="{max(begin + length, zero) + 6:.1f}" y="{y + 13}">{number(value)}</text>')
    base = top + HEAD + len(runs) * (BAR + GAP)
    parts.append(f'<line x1="{zero:.1f}" y1="{top + HEAD - 3}" x2="{zero:.1f}" y2="{base}" stroke="#999999"/>')
    return parts


def _is_number(value: object) -> bool:
    """Whether a bar can show the value: a number that is neither infinite nor NaN."""
    return isinstance(value, (int, float)) and not isinstance(value, bool) and abs(value) < float("inf")
