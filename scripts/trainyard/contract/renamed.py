"""Renamed values of the chart, from the table that the chart itself uses to reject the old names."""

import functools
from dataclasses import dataclass
from typing import Any

import yaml

from trainyard.paths import CHART

TABLE = CHART / "files" / "renamed.yaml"


@dataclass(frozen=True)
class Rename:
    """Old and new path of one value, which differ in the last key, and the replacements of its old settings, if any."""

    old: tuple[str, ...]
    new: tuple[str, ...]
    values: dict[str, str]

    def value(self, old: Any) -> Any:
        """The new value for an old one. Raises KeyError for a value that the chart never accepted."""
        return self.values[str(old)] if self.values else old

    def parent(self, values: Any) -> dict[str, Any] | None:
        """The block that contains the value under either name; None if it is missing."""
        for key in self.old[:-1]:
            values = values.get(key) if isinstance(values, dict) else None
        return values if isinstance(values, dict) else None

    def sentence(self, old: Any) -> str:
        """Human-readable sentence on what to write instead."""
        text = f"{'.'.join(self.old)} was renamed to {'.'.join(self.new)}"
        return f"{text}, and {old} to {self.values[str(old)]}" if str(old) in self.values else text


@functools.cache
def table() -> tuple[Rename, ...]:
    """Every renamed value."""
    rows = yaml.safe_load(TABLE.read_text())
    return tuple(
        Rename(tuple(row["from"].split(".")), tuple(row["to"].split(".")), row.get("values") or {}) for row in rows
    )


def used(values: Any) -> list[tuple[Rename, Any]]:
    """The renamed values that are still set under the old name, each with its setting."""
    found = []
    for rename in table():
        parent = rename.parent(values)
        if parent is not None and parent.get(rename.old[-1]) is not None:
            found.append((rename, parent[rename.old[-1]]))
    return found
