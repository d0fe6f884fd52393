"""The gate: a version's number against that of the version in service."""

from __future__ import annotations

from typing import Any

import pytest

from trainyard.errors import UsageError
from trainyard.serving import cards, gate


def card(version: str, **metrics: float) -> cards.Card:
    return cards.read({"version": version, "metrics": metrics}, f"runs/vision/models/digits/{version}")


@pytest.mark.parametrize(
    ("new", "old", "more", "passed"),
    [
        (0.97, 0.96, {}, True),
        (0.96, 0.96, {}, True),
        (0.95, 0.96, {}, False),
        (0.965, 0.96, {"gain": 0.01}, False),
        (0.955, 0.96, {"gain": -0.01}, True),
        (0.97, 0.96, {"minimum": 0.98}, False),
        (0.1, 0.2, {"lower": True}, True),
        (0.3, 0.2, {"lower": True}, False),
        (0.195, 0.2, {"lower": True, "gain": 0.01}, False),
        (0.1, 0.2, {"lower": True, "minimum": 0.05}, False),
    ],
)
def test_a_version_passes_when_it_is_as_good_as_it_has_to_be(
    new: float, old: float, more: dict[str, Any], passed: bool
) -> None:
    verdict = gate.judge(card("2", accuracy=new), card("1", accuracy=old), **more)
    assert verdict.passed is passed
    assert ("it may take its place" in verdict.text) is passed


def test_the_first_version_has_only_the_minimum_before_it() -> None:
    first = card("1", accuracy=0.5)
    assert gate.judge(first, None).passed and "nothing is in service" in gate.judge(first, None).text
    held = gate.judge(first, None, minimum=0.9)
    assert not held.passed and "digits@1 has accuracy 0.5, 0.9 is asked for: it stays out" in str(gate.held(held))


def test_a_number_that_was_not_measured_is_said() -> None:
    with pytest.raises(UsageError, match=r"digits@1 was not measured by accuracy; its card has loss"):
        gate.judge(card("1", loss=0.1), None)
    with pytest.raises(UsageError, match=r"digits@1 was not measured by accuracy; its card has none"):
        gate.judge(card("2", accuracy=1), card("1"))
