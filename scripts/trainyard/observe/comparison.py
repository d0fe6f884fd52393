"""Comparison of runs: their inputs, their results, and the differences."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from trainyard.observe.listing import columns
from trainyard.times import span

GROUPS = ("parameters", "metrics", "data", "code")
LONGEST = 44  # maximum length of a value in a table; longer values are cut
NONE, DIFFERS = "-", "≠"


@dataclass(frozen=True)
class Facts:
    """Facts about one run. `data` are inputs with their digests, `code` digests by step ("code" for a training job)."""

    name: str
    kind: str
    state: str
    seconds: float | None = None
    parameters: Mapping[str, Any] = field(default_factory=dict)
    metrics: Mapping[str, float] = field(default_factory=dict)
    data: Mapping[str, str] = field(default_factory=dict)
    code: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Line:
    """One fact of all runs, in order of the runs; None for a run that lacks it."""

    group: str
    name: str
    values: tuple[Any, ...]

    @property
    def same(self) -> bool:
        """Whether all runs have the same value."""
        return all(value is not None and value == self.values[0] for value in self.values)


def lines(runs: Sequence[Facts], *, different: bool = False) -> list[Line]:
    """All facts, group by group; with `different` only those that differ between the runs."""
    found = []
    for group in GROUPS:
        given = [getattr(run, group) for run in runs]
        for name in dict.fromkeys(name for one in given for name in one):
            line = Line(group, name, tuple(one.get(name) for one in given))
            if not (different and line.same):
                found.append(line)
    return found


def data(runs: Sequence[Facts], found: Sequence[Line]) -> dict[str, Any]:
    """The comparison as plain data; values are in order of the runs."""
    return {
        "runs": [{"name": run.name, "kind": run.kind, "state": run.state, "seconds": run.seconds} for run in runs],
        **{
            group: [
                {"name": line.name, "same": line.same, "values": list(line.values)}
                for line in found
                if line.group == group
            ]
            for group in GROUPS
        },
    }


def table(runs: Sequence[Facts], found: Sequence[Line]) -> str:
    """A table with a column for each run; rows with differences are marked."""
    rows = [["", "", *(run.name for run in runs)], ["", "kind", *(run.kind for run in runs)]]
    rows.append(["", "state", *(run.state for run in runs)])
    rows.append(["", "took", *(span(run.seconds) or NONE for run in runs)])
    for group in GROUPS:
        own = [line for line in found if line.group == group]
        if own:
            rows += [[""] * (2 + len(runs)), ["", group.upper(), *([""] * len(runs))]]
        for line in own:
            rows.append(["" if line.same else DIFFERS, line.name, *(_cell(value) for value in line.values)])
    return columns(rows)


def number(value: float) -> str:
    """A readable number."""
    return f"{value:.6g}"


def _cell(value: Any) -> str:
    text = NONE if value is None else number(value) if isinstance(value, float) else str(value)
    text = " ".join(text.split())
    return text if len(text) <= LONGEST else text[: LONGEST - 1] + "…"
