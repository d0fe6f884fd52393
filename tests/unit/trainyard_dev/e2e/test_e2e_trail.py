"""Lines counted as lost, or as read again from the beginning, of a pod that wrote while collectors were down."""

from contextlib import nullcontext
from types import SimpleNamespace
from typing import Any, cast

import pytest

from trainyard.training.kept.objects import Line
from trainyard_dev.e2e.checks import trail
from trainyard_dev.e2e.context import Context
from trainyard_dev.e2e.recorder import CheckError


def line(number: int) -> Line:
    return Line(0, 1000 + number, 10 * number, 0, f"line {number}")


class Lines(trail.Lines):
    """A pod that has written 101 lines, and a store that has these."""

    def __init__(self, found: list[Line]) -> None:
        last = SimpleNamespace(stdout="line 100\n")
        super().__init__(cast(Context, SimpleNamespace(kubectl=lambda *_, **__: last)))
        self.found = found

    def _stored(self) -> list[Line]:
        return self.found


@pytest.fixture(autouse=True)
def _no_patience(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trail, "PATIENCE_S", -1.0)


ALL = [line(number) for number in range(101)]


def test_what_was_on_its_way_may_come_twice() -> None:
    assert Lines(ALL).complete() == {"lines": 101, "lost": 0, "twice in the store": 0}
    assert Lines(ALL + ALL[60:]).complete() == {"lines": 101, "lost": 0, "twice in the store": 41}


@pytest.mark.parametrize(
    ("found", "said"),
    [
        (ALL[:40] + ALL[43:], "3 of 101 lines are not in the store, the first is 40"),
        (ALL[:-1], "1 of 101 lines are not in the store, the first is 100"),
        (ALL + ALL, "a collector lost its position"),
        ([*ALL, Line(0, 5000, 9999, 0, "line 50")], "lines are duplicated or out of order"),
    ],
)
def test_what_is_lost_or_read_again_is_said(found: list[Line], said: str) -> None:
    with pytest.raises(CheckError, match=said):
        Lines(found).complete()


def told(*processes: float) -> dict[str, Any]:
    return {"result": [{"value": [1_000.0, str(born)]} for born in processes]}


def test_of_two_processes_the_younger_runs_and_must_have_the_other_s_series(monkeypatch: pytest.MonkeyPatch) -> None:
    answers: dict[str, Any] = {}
    monkeypatch.setattr(trail, "prometheus", lambda context: nullcontext(1))
    monkeypatch.setattr(trail, "ask", lambda port, path, **words: answers["then" if "time" in words else "now"])
    context = cast(Context, None)
    answers["now"] = told(50.0)
    before = trail.born(context)
    answers |= {"now": told(50.0, 90.0), "then": told(50.0)}
    assert trail.require_kept(context, before).value == "90.0"
    answers["then"] = told()
    with pytest.raises(CheckError, match=r"Prometheus has \[\], but had 50.0 before"):
        trail.require_kept(context, before)
    answers["now"] = told(50.0)
    with pytest.raises(CheckError, match="was not started again"):
        trail.require_kept(context, before)
