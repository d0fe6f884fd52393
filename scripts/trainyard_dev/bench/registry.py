"""All benches by name, in the order of the page."""

from collections.abc import Mapping, Sequence
from typing import Protocol, cast

from trainyard.errors import UsageError
from trainyard_dev.bench import fairness, gangs, order, packing, throughput
from trainyard_dev.bench.harness import Harness
from trainyard_dev.bench.results import Figure, Result, Run


class Bench(Protocol):
    """What the module of a bench has."""

    TITLE: str  # heading on the page
    FRESH: bool  # whether every run gets an API server of its own
    HEADINGS: Mapping[str, str]  # what the page calls a metric, with its unit
    SHORT: Sequence[str]  # metrics of the short table beside the first
    LESS: Sequence[str]  # metrics without a limit of which less is better

    def plan(self, full: bool) -> list[Run]:
        """What to measure, the most important first; less of it when not `full`."""

    def measure(self, run: Run, harness: Harness) -> dict[str, float]:
        """One run on an empty harness: what was found, by metric."""

    def figures(self, results: Sequence[Result]) -> list[Figure]:
        """What is published: over all seeds."""

    def section(self, figures: Sequence[Figure]) -> str:
        """The bench's part of the page below its heading, made from figures alone."""


BENCHES = cast(
    dict[str, Bench],
    {"packing": packing, "gangs": gangs, "order": order, "fairness": fairness, "throughput": throughput},
)


def load(name: str) -> Bench:
    """The bench of this name. Raises UsageError that lists all."""
    if name not in BENCHES:
        raise UsageError(f"unknown bench {name}", hint=f"use one of {', '.join(BENCHES)}")
    return BENCHES[name]


def plan(name: str, full: bool) -> list[Run]:
    """The runs of a bench, each once."""
    runs: dict[str, Run] = {}
    for run in load(name).plan(full):
        runs.setdefault(run.id, run)
    return list(runs.values())
