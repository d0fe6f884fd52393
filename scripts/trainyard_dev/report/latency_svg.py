"""Duration of requests with other load and without, as an SVG file: a panel per service, a bar per figure."""

from collections.abc import Mapping, Sequence
from html import escape

# Okabe and Ito's colours, which people with colour blindness can tell apart.
SIDES = {"without": "#0072B2", "beside": "#D55E00"}
WIDTH, MARGIN, LABEL, VALUE = 820, 16, 190, 96  # pixels
BAR, GAP, HEAD, FOOT = 14, 4, 30, 14


def draw(title: str, panels: Mapping[str, Mapping[str, Mapping[str, float]]], figures: Sequence[str]) -> str:
    """Bars begin at zero; each panel has its own scale, since services differ more than the two sides.

    Args:
        panels: by service, then by a key of SIDES: milliseconds by figure, and further values.
    """
    tall = HEAD + len(figures) * (len(SIDES) * BAR + 2 * GAP) + FOOT
    height = 2 * MARGIN + 48 + len(panels) * tall
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" role="img" '
        'font-family="sans-serif" font-size="12" fill="#222222">',
        f"<title>{escape(title)}</title>",
        f'<rect width="{WIDTH}" height="{height}" fill="#ffffff"/>',
        f'<text x="{MARGIN}" y="{MARGIN + 14}" font-size="15" font-weight="bold">{escape(title)}</text>',
    ]
    for number, (side, colour) in enumerate(SIDES.items()):
        x = MARGIN + number * 190
        parts.append(f'<rect x="{x}" y="{MARGIN + 26}" width="12" height="12" fill="{colour}"/>')
        parts.append(f'<text x="{x + 17}" y="{MARGIN + 36}">{side} training</text>')
    for number, (service, sides) in enumerate(panels.items()):
        parts += _panel(service, sides, figures, MARGIN + 48 + number * tall)
    return "\n".join([*parts, "</svg>", ""])


def _panel(service: str, sides: Mapping[str, Mapping[str, float]], figures: Sequence[str], top: int) -> list[str]:
    scale = (WIDTH - 2 * MARGIN - LABEL - VALUE) / max([*(sides[side][one] for side in SIDES for one in figures), 1e-9])
    asked = ", ".join(
        f"{side} {sides[side]['requests']:.0f} requests, {sides[side]['lost']:.0f} lost" for side in SIDES
    )
    parts = [f'<text x="{MARGIN}" y="{top + 18}"><tspan font-weight="bold">{escape(service)}</tspan> ({asked})</text>']
    y = top + HEAD
    for one in figures:
        name = one.removesuffix("_ms")
        parts.append(f'<text x="{MARGIN + LABEL - 8}" y="{y + BAR + 4}" text-anchor="end">{escape(name)}</text>')
        for side, colour in SIDES.items():
            wide = max(sides[side][one] * scale, 1)
            left = MARGIN + LABEL
            parts.append(f'<rect x="{left}" y="{y}" width="{wide:.1f}" height="{BAR - 2}" fill="{colour}"/>')
            parts.append(f'<text x="{left + wide + 6:.1f}" y="{y + BAR - 3}">{sides[side][one]:g} ms</text>')
            y += BAR
        y += 2 * GAP
    return parts
