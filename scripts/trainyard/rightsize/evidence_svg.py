"""Usage of runs next to their requests and proposals as an SVG file; the same data give the same file."""

from collections.abc import Sequence
from html import escape

from trainyard.observe.comparison_svg import LONGEST, MARGIN, header
from trainyard.rightsize import quantity
from trainyard.rightsize.judged import RESOURCES, Judged
from trainyard.rightsize.proposal import THROTTLED
from trainyard.rightsize.usage import Part

# Okabe and Ito's palette, which is safe for colour-blind readers.
USED, PEAK, ASKED, PROPOSED = "#0072B2", "#56B4E9", "#D55E00", "#009E73"
WIDTH, LABEL, VALUE, AMOUNT = 820, 190, 160, 50  # pixels; VALUE includes AMOUNT
BAR, GAP, HEAD, FOOT = 16, 5, 44, 16
LEGEND = (
    (USED, "used: half of the time, 95 % (dark)"),
    (PEAK, "the most"),
    (ASKED, "asked for"),
    (PROPOSED, "proposed"),
)


def draw(judged: Sequence[Judged]) -> str:
    """Draws a panel for each container and resource, with a bar for each run; bars begin at zero."""
    panels = [(one, resource) for one in judged if one.found.used for resource in RESOURCES]
    tall = sum(_height(one) for one, _ in panels)
    height = 2 * MARGIN + 48 + max(tall, 30)
    title = "What " + ", ".join(dict.fromkeys(one.job.name for one in judged)) + " used and asks for"
    parts = [*header(title, WIDTH, height), *_legend()]
    if not panels:
        parts.append(f'<text x="{MARGIN}" y="{MARGIN + 64}">No run was long enough to judge.</text>')
    top = MARGIN + 48
    for one, resource in panels:
        parts += _panel(one, resource, top)
        top += _height(one)
    return "\n".join([*parts, "</svg>", ""])


def _height(one: Judged) -> int:
    return HEAD + len(one.found.used) * (BAR + GAP) + FOOT


def _legend() -> list[str]:
    parts, x = [], MARGIN
    for colour, text in LEGEND:
        parts.append(f'<rect x="{x}" y="{MARGIN + 26}" width="12" height="12" fill="{colour}"/>')
        parts.append(f'<text x="{x + 17}" y="{MARGIN + 36}">{escape(text)}</text>')
        x += 40 + 6 * len(text)
    return parts


def _panel(one: Judged, resource: str, top: int) -> list[str]:
    asked, new = one.request(one.asked, resource), one.request(one.new, resource)
    figures = [getattr(part, resource) for _, part in one.found.used]
    most = max([*(value for figure in figures for value in figure.values()), asked or 0, new or 0, 1e-9])
    left = MARGIN + LABEL
    scale = (WIDTH - 2 * MARGIN - LABEL - VALUE) / most
    head = f"{one.job.name} {one.title}: {'cores' if resource == quantity.CPU else 'memory'}"
    if why := one.new.why.get(resource):
        head += f" ({why})"
    parts = [f'<text x="{MARGIN}" y="{top + 16}" font-weight="bold">{escape(head)}</text>']
    y = top + HEAD
    for (run, part), figure in zip(one.found.used, figures, strict=True):
        name = run.job if len(run.job) <= LONGEST else run.job[: LONGEST - 1] + "…"
        parts.append(f'<text x="{left - 8}" y="{y + 12}" text-anchor="end">{escape(name)}</text>')
        for share, colour, opacity in (("max", PEAK, 0.6), ("p95", USED, 0.75), ("p50", USED, 1.0)):
            if share in figure:
                wide = max(figure[share] * scale, 1)
                parts.append(
                    f'<rect x="{left}" y="{y}" width="{wide:.1f}" height="{BAR}" fill="{colour}" '
                    f'fill-opacity="{opacity}"/>'
                )
        if trouble := _trouble(resource, part):
            parts.append(f'<text x="{WIDTH - MARGIN - AMOUNT}" y="{y + 12}" text-anchor="end">{trouble}</text>')
        amount = quantity.shown(resource, figure.get("max"))
        # In its own column: the line of the proposal may be right behind the bar.
        parts.append(f'<text x="{WIDTH - MARGIN}" y="{y + 12}" text-anchor="end">{amount}</text>')
        y += BAR + GAP
    for value, colour, name, up in ((asked, ASKED, "asked", 2), (new, PROPOSED, "proposed", 14)):
        if value is not None:
            x = left + value * scale
            label = f"{name} {quantity.text(resource, value)}"
            anchor = "end" if x > WIDTH - MARGIN - 120 else "start"
            parts.append(
                f'<line x1="{x:.1f}" y1="{top + HEAD - up}" x2="{x:.1f}" y2="{y}" stroke="{colour}" stroke-width="2"/>'
            )
            parts.append(
                f'<text x="{x + (-4 if anchor == "end" else 4):.1f}" y="{top + HEAD - up}" font-size="11" '
                f'fill="{colour}" text-anchor="{anchor}">{label}</text>'
            )
    parts.append(f'<line x1="{left}" y1="{top + HEAD - 3}" x2="{left}" y2="{y}" stroke="#999999"/>')
    return parts


def _trouble(resource: str, part: Part) -> str:
    """Problems that a bar doesn't show: that the run was killed for memory, or throttled by its limit."""
    if resource == quantity.MEMORY and part.oom:
        return "killed for memory"
    if resource == quantity.CPU and part.throttled > THROTTLED:
        return f"throttled {part.throttled:.0%}"
    return ""
