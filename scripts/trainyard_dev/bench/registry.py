"""All benches by name, in the order of the page."""

from collections.abc import Mapping, Sequence
from typing import Protocol, cast

from trainyard.errors import UsageError
from trainyard_dev.bench import fairness, gangs, order, packing, throughput
from trainyard_dev.bench.harness import Harness
from trainyard_dev.bench.results import Figure, Result, Run


class Bench(Protocol):
    """The interface of a bench's module."""

    TITLE: str  # heading on the page
    FRESH: bool  # whether every run gets its own API server
    HEADINGS: Mapping[str, str]  # name of each metric on the page, with its unit
    SHORT: Sequence[str]  # further metrics of the short table
    LESS: Sequence[str]  # metrics without a limit where less is better

    def plan(self, full: bool) -> list[Run]:
        """The runs to measure, the most important first; fewer when not `full`."""

    def measure(self, run: Run, harness: Harness) -> dict[str, float]:
        """Measures one run on an empty harness; returns values by metric."""

    def figures(self, results: Sequence[Result]) -> list[Figure]:
        """The figures to publish, over all seeds."""

    def section(self, figures: Sequence[Figure]) -> str:
        """The bench's part of the page below its heading, made from figures alone."""


BENCHES = cast(
    dict[str, Bench],
    {"packing": packing, "gangs": gangs, "order": order, "fairness": fairness, "throughput": throughput},
)


def load(name: str) -> Bench:
    """Returns the bench of this name. Raises UsageError that lists all."""
    if name not in BENCHES:
        raise UsageError(f"unknown bench {name}", hint=f"use one of {', '.join(BENCHES)}")
    return BENCHES[name]


def plan(name: str, full: bool) -> list[Run]:
    """The runs of a bench, each once."""
    runs: dict[str, Run] = {}
    for run in load(name).plan(full):
        runs.setdefault(run.id, run)
    return list(runs.values())
