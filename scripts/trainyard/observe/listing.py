"""A team's runs of pipelines and training jobs in one list."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime

from trainyard.terminal import printable
from trainyard.times import now, span

FORMATS = ("table", "wide", "json", "yaml", "name")
LONGEST = 72  # maximum length of a note in a table


@dataclass(frozen=True)
class Row:
    """One row. `done`: finished steps or running pods; `note`: why it waits, or why it failed."""

    name: str
    kind: str
    state: str
    done: str
    created: datetime | None
    seconds: float | None
    note: str = ""
    pipeline: str = ""
    experiment: str = ""
    queue: str = ""
    priority: str = ""
    submitter: str = ""


def table(rows: Sequence[Row], *, wide: bool = False) -> str:
    """The rows as a table."""
    at = now()
    head = ["NAME", "KIND", "STATE", "DONE", "AGE", "TOOK", "PIPELINE", "EXPERIMENT"]
    head += ["QUEUE", "PRIORITY", "SUBMITTED BY"] if wide else []
    found = [[*head, "NOTE"]]
    for row in rows:
        age = (at - row.created).total_seconds() if row.created else None
        cells = [row.name, row.kind, row.state, row.done, span(age), span(row.seconds), row.pipeline, row.experiment]
        cells += [row.queue, row.priority, row.submitter] if wide else []
        found.append([*cells, row.note if wide or len(row.note) <= LONGEST else row.note[: LONGEST - 1] + "…"])
    return columns(found)


def some(names: Iterable[str], most: int) -> str:
    """The first names of a list, and the number of the remaining ones."""
    listed = list(names)
    return ", ".join(listed[:most]) + (f" and {len(listed) - most} more" if len(listed) > most else "")


def columns(rows: Sequence[Sequence[str]]) -> str:
    """Text in columns, each as wide as its longest cell; cells contain only printable characters."""
    rows = [[printable(cell) for cell in row] for row in rows]
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    padded = ("  ".join(f"{cell:<{width}}" for cell, width in zip(row, widths, strict=True)) for row in rows)
    return "\n".join(line.rstrip() for line in padded)
