"""A run as lines of text: the table of its steps, and one line for each change."""

from collections.abc import Sequence
from datetime import datetime

from trainyard.pipelines.runs import model
from trainyard.pipelines.runs.snapshot import RunSnapshot
from trainyard.times import span

COLOURS = {
    "done": "32",
    "cached": "36",
    "running": "33",
    "starting": "33",
    "failed": "31",
    "error": "31",
    "blocked": "31",
    "queued": "35",
    "waiting": "2",
    "stopped": "2",
    "skipped": "2",
    "omitted": "2",
}
NAME_LONGEST, ITEM_LONGEST = 48, 80
# Rows to keep when there isn't room for all: lower numbers first.
RANK = {"failed": 0, "error": 0, "blocked": 1, "running": 2, "starting": 3, "queued": 3, "pending": 4, "waiting": 6}


def heading(snapshot: RunSnapshot) -> str:
    """One line about the whole run."""
    run = snapshot.run
    ended = sum(step.ended for step in run.steps)
    parts = [f"{ended} of {len(run.steps)} steps", span(run.seconds(snapshot.at))]
    parts += [f"{word} {value}" for word, value in (("queue", run.queue), ("experiment", run.experiment)) if value]
    return f"{run.name} in {run.namespace}: {run.state}, {', '.join(filter(None, parts))}"


def lines(
    snapshot: RunSnapshot,
    *,
    width: int = 0,
    height: int = 0,
    colour: bool = False,
    chosen: str = "",
    wide: bool = False,
) -> list[str]:
    """The heading, and a row for each step.

    Args:
        width: longest line; 0 means no limit.
        height: maximum number of lines; the last one counts what doesn't fit. 0 means no limit.
        chosen: id of the selected step.
    """
    rows, left_out = _fitting(snapshot, height - 4 if height else 0)
    names = [_end(step.name, NAME_LONGEST) for step in rows]
    column = max([4, *map(len, names)])
    found = [heading(snapshot), f"  {'STEP':<{column}}  {'STATE':<8}  {'TIME':>6}  TRIES  NOTE".rstrip()]
    for step, name in zip(rows, names, strict=True):
        state = snapshot.state(step)
        painted = f"\x1b[{COLOURS[state]}m{state:<8}\x1b[0m" if colour and state in COLOURS else f"{state:<8}"
        tries = str(step.attempts) if step.attempts > 1 or wide else ""
        note = snapshot.note(step) or (step.item and f"item {_cut(step.item, ITEM_LONGEST)}")
        room = width - column - 28 if width else 0
        if room:
            note = _cut(note, max(12, room))
        mark = ">" if step.id == chosen else " "
        row = f"{mark} {name:<{column}}  {painted}  {span(step.seconds(snapshot.at)):>6}  {tries:>5}  {note}".rstrip()
        found.append(row)
    if left_out:
        found.append(f"  and {len(left_out)} more: {_counted(snapshot, left_out)}")
    found += [f"  {line}"[: width or None] for line in snapshot.jobs]
    return [line if width == 0 or colour else line[:width] for line in found]


def visible(snapshot: RunSnapshot, height: int) -> Sequence[model.Step]:
    """The steps that `lines` shows at this height, in its order."""
    return _fitting(snapshot, height - 4 if height else 0)[0]


def changes(before: RunSnapshot | None, after: RunSnapshot) -> list[str]:
    """Changes since the last snapshot, one line each, for output that is not redrawn."""
    known = {} if before is None else {step.id: (before.state(step), before.note(step)) for step in before.run.steps}
    found = []
    for step in after.run.steps:
        state, note = after.state(step), after.note(step)
        if state == "waiting" or known.get(step.id) == (state, note):
            continue
        if known.get(step.id, ("",))[0] == state and not note:
            continue
        took = f" after {span(step.seconds(after.at))}" if step.ended and step.attempts else ""
        tries = f" (try {step.attempts})" if step.attempts > 1 and not step.ended else ""
        found.append(f"{_clock(after.at)} {step.name}: {state}{took}{tries}{f', {note}' if note else ''}")
    old = set() if before is None else set(before.jobs)
    found += [f"{_clock(after.at)} {line}" for line in after.jobs if line not in old]
    if before is None or before.run.state != after.run.state:
        note = f", {after.run.message}" if after.run.message and not after.run.succeeded else ""
        found.append(f"{_clock(after.at)} run {after.run.name}: {after.run.state}{note}")
    return found


def _fitting(snapshot: RunSnapshot, room: int) -> tuple[list[model.Step], list[model.Step]]:
    steps = list(snapshot.run.steps)
    if room <= 0 or len(steps) <= room:
        return steps, []
    order = {step.id: number for number, step in enumerate(steps)}
    by_need = sorted(steps, key=lambda step: (RANK.get(snapshot.state(step), 5), -order[step.id]))
    kept = {step.id for step in by_need[: max(1, room - 1)]}
    return [s for s in steps if s.id in kept], [s for s in steps if s.id not in kept]


def _counted(snapshot: RunSnapshot, steps: Sequence[model.Step]) -> str:
    counts: dict[str, int] = {}
    for step in steps:
        counts[snapshot.state(step)] = counts.get(snapshot.state(step), 0) + 1
    return ", ".join(f"{count} {state}" for state, count in counts.items())


def _cut(text: str, longest: int) -> str:
    return text if len(text) <= longest else text[: longest - 1] + "…"


def _end(text: str, longest: int) -> str:
    """The end of a name: steps of one group begin alike."""
    return text if len(text) <= longest else "…" + text[len(text) - longest + 1 :]


def _clock(at: datetime) -> str:
    return at.astimezone().strftime("%H:%M:%S")
