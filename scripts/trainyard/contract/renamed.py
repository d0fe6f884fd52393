"""Values of the chart that have another name now, read from the table that the chart itself refuses them by."""

import functools
from dataclasses import dataclass
from typing import Any

import yaml

from trainyard.paths import CHART

TABLE = CHART / "files" / "renamed.yaml"


@dataclass(frozen=True)
class Rename:
    """One value's old and new path, which differ in their last key, and the new word for each old one, if any."""

    old: tuple[str, ...]
    new: tuple[str, ...]
    values: dict[str, str]

    def value(self, old: Any) -> Any:
        """What is to be written for an old value. Raises KeyError for one that the chart never took."""
        return self.values[str(old)] if self.values else old

    def parent(self, values: Any) -> dict[str, Any] | None:
        """The block of values that has or had it; None where there is none."""
        for key in self.old[:-1]:
            values = values.get(key) if isinstance(values, dict) else None
        return values if isinstance(values, dict) else None

    def sentence(self, old: Any) -> str:
        """What to write instead, for people."""
        text = f"{'.'.join(self.old)} is called {'.'.join(self.new)} now"
        return f"{text}, and {old} is {self.values[str(old)]}" if str(old) in self.values else text


@functools.cache
def table() -> tuple[Rename, ...]:
    """Every renamed value."""
    rows = yaml.safe_load(TABLE.read_text())
    return tuple(
        Rename(tuple(row["from"].split(".")), tuple(row["to"].split(".")), row.get("values") or {}) for row in rows
    )


def used(values: Any) -> list[tuple[Rename, Any]]:
    """The renamed values that these still have under the old name, each with what it is."""
    found = []
    for rename in table():
        parent = rename.parent(values)
        if parent is not None and parent.get(rename.old[-1]) is not None:
            found.append((rename, parent[rename.old[-1]]))
    return found
