"""The short gate: a few runs of our configuration, whose figures must lie within tolerances before a change may land.

`docs/benchmarks/gate.yaml` holds runs and ranges, and the configurations that have passed.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from trainyard.errors import TrainyardError
from trainyard.paths import ROOT
from trainyard_dev.bench import configurations
from trainyard_dev.bench.results import Result

FILE = ROOT / "docs" / "benchmarks" / "gate.yaml"
PASSED = "passed"


@dataclass(frozen=True)
class Range:
    """The range allowed for one figure of one run; None: no limit on that side."""

    bench: str
    case: str
    column: str
    seed: int
    metric: str
    least: float | None = None
    most: float | None = None

    @property
    def run(self) -> str:
        """The id of its run."""
        return f"{self.bench}.{self.case}.{self.column}.s{self.seed}"

    def violation(self, values: Mapping[str, float]) -> str:
        """Describes how a run's figures violate the range; "" when they are within it."""
        if self.metric not in values:
            return f"{self.run} gave no {self.metric}"
        value = values[self.metric]
        if self.least is not None and value < self.least:
            return f"{self.run}: {self.metric} is {value:g}, below {self.least:g}"
        if self.most is not None and value > self.most:
            return f"{self.run}: {self.metric} is {value:g}, above {self.most:g}"
        return ""


def ranges(file: Path = FILE) -> list[Range]:
    """Reads all ranges. Raises TrainyardError for a file that has none."""
    found = [Range(**one) for one in _read(file).get("ranges") or []]
    if not found:
        raise TrainyardError("no figure has a range", where=str(file), hint="add one under ranges")
    return found


def judge(wanted: Sequence[Range], results: Sequence[Result]) -> list[str]:
    """Returns a sentence for each figure out of its range and for each run that was not measured."""
    by_run = {result.run.id: result.values for result in results}
    return [
        violation for one in wanted
        if (violation := one.violation(by_run[one.run]) if one.run in by_run else f"{one.run} was not measured")
    ]  # fmt: skip


def passed(file: Path = FILE) -> dict[str, str]:
    """Digests of the configurations that have passed, by name."""
    return dict(_read(file).get(PASSED) or {})


def remember(wanted: Sequence[Range], digest: Callable[[str], str] | None = None, file: Path = FILE) -> dict[str, str]:
    """Records that the current configurations of the ranges passed; keeps the file's comments."""
    of = digest or (lambda name: configurations.column(name).digest)
    held = {name: of(name) for name in dict.fromkeys(one.column for one in wanted)}
    head = file.read_text().split(f"\n{PASSED}:")[0].rstrip()
    file.write_text(f"{head}\n{PASSED}:\n" + "".join(f"  {name}: {text}\n" for name, text in held.items()))
    return held


def _read(file: Path) -> dict[str, Any]:
    return yaml.safe_load(file.read_text()) if file.exists() else {}
