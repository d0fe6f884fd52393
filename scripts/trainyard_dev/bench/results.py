"""Runs, their results as JSON files, and the figures over all seeds."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from statistics import fmean
from typing import Any

from trainyard.errors import TrainyardError, UsageError

NAME = re.compile(r"[A-Za-z0-9@+._-]+")
DIGITS = 6  # significant ones in figures
Metric = tuple[str, str, float | str | None]  # heading on the page, unit, limit or the metric that is it


@dataclass(frozen=True)
class Run:
    """One thing to measure. `settings`: those of the case, in values that JSON can hold."""

    bench: str
    case: str
    column: str
    seed: int
    settings: Mapping[str, Any] = field(default_factory=dict, hash=False)

    def __post_init__(self) -> None:
        for word in (self.bench, self.case, self.column):
            if not NAME.fullmatch(word):
                raise UsageError(f"{word!r} is invalid in the name of a run", hint="use letters, digits and @ + - . _")

    @property
    def id(self) -> str:
        """Its name, also that of its file."""
        return f"{self.group}.s{self.seed}"

    @property
    def group(self) -> str:
        """Key shared by the runs that differ only in the seed."""
        return f"{self.bench}.{self.case}.{self.column}"

    @property
    def settings_digest(self) -> str:
        """Digest of the run's settings for a summary."""
        return hashlib.sha256(json.dumps(self.settings, sort_keys=True).encode()).hexdigest()[:12]

    @property
    def command(self) -> str:
        """Command that measures only this run."""
        return command(self.bench, self.case, self.column, [self.seed])


@dataclass
class Result:
    """A measured run: its configuration (`digest`), programs, seconds and values."""

    run: Run
    values: dict[str, float]
    digest: str
    versions: dict[str, str]
    seconds: float
    command: str

    def to_json(self) -> str:
        """Returns the JSON text, one value per line. Raises TrainyardError where a value is not a finite number."""
        try:
            return json.dumps(asdict(self) | {"id": self.run.id}, indent=1, sort_keys=True, allow_nan=False) + "\n"
        except (TypeError, ValueError) as error:
            raise TrainyardError(f"the result is not a plain number: {error}", where=self.run.id) from None

    @classmethod
    def from_json(cls, text: str) -> Result:
        """Parses what `to_json` wrote. Raises ValueError, KeyError or TypeError for anything else."""
        data = json.loads(text)
        data.pop("id", None)
        return cls(**(data | {"run": Run(**data["run"])}))


@dataclass(frozen=True)
class Figure:
    """One number to publish: the mean over the seeds, between `low` and `high`, and the limit of what is possible."""

    bench: str
    case: str
    column: str
    metric: str
    value: float
    low: float
    high: float
    bound: float | None
    unit: str
    seeds: list[int]
    command: str

    @classmethod
    def once(cls, bench: str, case: str, column: str, metric: str, value: float, unit: str, command: str,
             bound: float | None = None) -> Figure:  # fmt: skip
        """Makes a figure of a value that was measured or computed once."""
        return cls(bench, case, column, metric, value, value, value, bound, unit, [1], command)

    @property
    def id(self) -> str:
        """Its name."""
        return f"{self.group}.{self.metric}"

    @property
    def group(self) -> str:
        """The group of its runs."""
        return f"{self.bench}.{self.case}.{self.column}"


def command(bench: str, case: str, column: str, seeds: Iterable[int]) -> str:
    """Returns the command that measures only one case with one configuration."""
    return f"bin/trainyard bench replay {bench} --case {case} --column {column} --seed {ranges(sorted(set(seeds)))}"


def grouped(results: Iterable[Result]) -> dict[tuple[str, str], list[Result]]:
    """Groups results by (case, column) in order of first appearance, sorted by seed."""
    found: dict[tuple[str, str], list[Result]] = {}
    for result in results:
        found.setdefault((result.run.case, result.run.column), []).append(result)
    return {key: sorted(alike, key=lambda one: one.run.seed) for key, alike in found.items()}


def summarise(results: Iterable[Result], metric: str, unit: str, bound: float | str | None = None) -> list[Figure]:
    """The mean of the value `metric` over the seeds, one figure for each case and column that has it.

    `bound` is a number, or the metric whose mean is the bound; without that metric the figure has no bound.
    """
    figures = []
    for alike in grouped(results).values():
        having = [one for one in alike if metric in one.values]
        if not having:
            continue
        limit: float | None = None
        if isinstance(bound, str):
            limits = [one.values[bound] for one in having if bound in one.values]
            limit = fmean(limits) if len(limits) == len(having) else None
        elif bound is not None:
            limit = float(bound)
        figures.append(figure(having, metric, unit, [one.values[metric] for one in having], limit))
    return figures


def summarise_all(results: Iterable[Result], metrics: Mapping[str, Metric]) -> list[Figure]:
    """Summarises several metrics, one after the other."""
    return [one for metric, (_, unit, bound) in metrics.items() for one in summarise(results, metric, unit, bound)]


def headings(metrics: Mapping[str, Metric]) -> dict[str, str]:
    """Names of the metrics on the page."""
    return {metric: heading for metric, (heading, _, _) in metrics.items()}


def figure(alike: Sequence[Result], metric: str, unit: str, values: Sequence[float], bound: float | None) -> Figure:
    """The figure of these results of one case and column: mean, lowest and highest of `values`, one for each seed."""
    run, seeds = alike[0].run, [one.run.seed for one in alike]
    mean, low, high = (rounded(of(values)) for of in (fmean, min, max))
    limit = None if bound is None else rounded(bound)
    said = command(run.bench, run.case, run.column, seeds)
    return Figure(run.bench, run.case, run.column, metric, mean, low, high, limit, unit, seeds, said)


def read(folder: Path) -> list[Result]:
    """Reads all results in a folder by name; skips files that hold none."""
    return [result for file in sorted(folder.glob("*.json")) if (result := read_one(file)) is not None]


def read_one(file: Path) -> Result | None:
    """Reads the result in a file; None where there is none."""
    try:
        return Result.from_json(file.read_text())
    except (OSError, ValueError, KeyError, TypeError, AttributeError, UsageError):
        return None


def numbers(text: str) -> list[int]:
    """Parses ranges: [1, 2, 3, 7] for 1-3,7. Raises ValueError for anything else."""
    found: list[int] = []
    for part in text.split(","):
        first, dash, last = part.partition("-")
        if not first.isdecimal() or (dash and not last.isdecimal()):
            raise ValueError(f"{text} names no numbers")
        found += range(int(first), int(last or first) + 1)
    if not found:
        raise ValueError(f"{text} names no numbers")
    return found


def ranges(numbers: Sequence[int]) -> str:
    """Formats numbers as ranges: 1-3,7 for 1, 2, 3, 7."""
    parts: list[list[int]] = []
    for number in numbers:
        if parts and number == parts[-1][-1] + 1:
            parts[-1].append(number)
        else:
            parts.append([number])
    return ",".join(str(part[0]) if len(part) == 1 else f"{part[0]}-{part[-1]}" for part in parts)


def rounded(value: float) -> float:
    """Rounds a value to the digits of figures."""
    return float(f"{value:.{DIGITS}g}")
