"""Colours of the timeline's phases: fixed for known phases, assigned in order for others.

Every fill carries white text at a contrast of at least 4.5 and stands out from a white and from a dark page at 2.5.
"""

from collections.abc import Iterable

KNOWN = {
    "queued": "#8a5a00",
    "placed": "#7a3ff2",
    "pulling": "#0a66d0",
    "running": "#1a7f37",
    "done": "",  # drawn as a mark in the colour of the text
    "jobs": "#1a7f37",
    "failed": "#cf222e",
    "refused": "#b3261e",
}
FREE = (
    "#0e7490",
    "#bf3989",
    "#64748b",
    "#4f5bd5",
    "#c2410c",
    "#4d7c0f",
    "#8250a0",
    "#0f766e",
    "#be123c",
    "#8a6d00",
    "#a21caf",
    "#2563eb",
    "#7c6a58",
    "#5f7a2a",
)
_ORDER = ("queued", "placed", "pulling", "running", "done")


def colours(phases: Iterable[str]) -> dict[str, str]:
    """A colour for each phase, in the order of a legend: other phases as they appear, then those of a job's life."""
    distinct = list(dict.fromkeys(phases))
    free = [p for p in distinct if p not in KNOWN]
    result = {phase: FREE[i % len(FREE)] for i, phase in enumerate(free)}
    result.update({p: KNOWN[p] for p in distinct if p in KNOWN and p not in _ORDER})
    result.update({p: KNOWN[p] for p in _ORDER if p in distinct})
    return result
