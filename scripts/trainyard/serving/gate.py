"""Decides whether a version may replace the one in service, by comparing a metric of their cards."""

from dataclasses import dataclass
from typing import Any

from trainyard.errors import TrainyardError, UsageError
from trainyard.serving.cards import Card
from trainyard.terminal import printable

METRIC = "accuracy"


@dataclass(frozen=True)
class Verdict:
    """The comparison and its result. Without a version in service, only `minimum` applies."""

    metric: str
    candidate: Card
    value: float
    served: Card | None
    bar: float | None
    passed: bool

    @property
    def text(self) -> str:
        """The verdict in one sentence."""
        own = f"{self.candidate.title} has {self.metric} {self.value:g}"
        if self.bar is None:
            return f"{own}; nothing is in service to compare it with"
        against = (
            f"{self.served.title} in service requires {self.bar:g}" if self.served else f"{self.bar:g} is required"
        )
        return f"{own}, {against}: {'it may take its place' if self.passed else 'it stays out'}"

    def document(self) -> dict[str, Any]:
        """The verdict as plain data."""
        served = self.served.title if self.served else None
        return {"metric": self.metric, "candidate": self.candidate.title, "value": self.value, "served": served,
                "bar": self.bar, "passed": self.passed}  # fmt: skip


def judge(
    candidate: Card,
    served: Card | None,
    metric: str = METRIC,
    *,
    gain: float = 0.0,
    minimum: float | None = None,
    lower: bool = False,
) -> Verdict:
    """Compares a version with the one in service.

    Args:
        gain: required improvement; below zero: allowed deterioration.
        minimum: required value in any case; with `lower` the maximum.
        lower: whether less is better, as for a loss.

    Raises:
        UsageError: a card lacks that metric.
    """
    value = _number(candidate, metric)
    sign = -1.0 if lower else 1.0
    bars = [] if minimum is None else [minimum]
    if served is not None:
        bars.append(_number(served, metric) + sign * gain)
    bar = max(bars, key=lambda one: sign * one) if bars else None
    passed = bar is None or sign * value >= sign * bar
    return Verdict(metric, candidate, value, served, bar, passed)


def held(verdict: Verdict) -> TrainyardError:
    """The error for a version that is not deployed."""
    hint = "train longer, or lower the gate's requirement; the version in service stays"
    return TrainyardError(verdict.text, hint=hint)


def _number(card: Card, metric: str) -> float:
    if metric not in card.metrics:
        there = printable(", ".join(sorted(card.metrics))) or "none"
        what = f"{card.title} was not measured by {metric}; its card has {there}"
        raise UsageError(what, hint="use another metric, or register it again with --metric NAME=VALUE")
    return card.metrics[metric]
