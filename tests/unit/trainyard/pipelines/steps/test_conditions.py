"""Conditions on objects mean what they mean to Argo."""

from __future__ import annotations

from typing import Any

import pytest

from trainyard.errors import UsageError
from trainyard.pipelines.steps import conditions

JOB: dict[str, Any] = {
    "metadata": {"labels": {"app.kubernetes.io/name": "ray"}, "generation": 2},
    "status": {
        "phase": "Running", "ready": 2.0, "paused": False, "state": {"phase": "Pending"}, "message": "two, of 3",
        "conditions": [{"type": "Created", "status": "True"}, {"type": "Ready", "status": "False"}],
        "replicaStatuses": {"Worker": {"succeeded": 1}},
    },
}  # fmt: skip


@pytest.mark.parametrize(
    "condition",
    [
        "status.phase == Running",
        "status.phase = Running",
        "status.phase==Running,status.ready>1",
        "status.ready > 1, status.ready < 3",
        "status.ready == 2",
        "status.paused == false",
        "status.phase in (Succeeded, Running)",
        "status.phase notin (Succeeded,Failed)",
        "status.phase != Failed",
        "status.absent != Failed",
        "status.replicaStatuses.Worker.succeeded > 0",
        "status.conditions.0.type == Created",
        "status.conditions.#(type==Ready).status == False",
        'status.conditions.#(type == "Ready").status == "False"',
        "status.conditions.# == 2",
        r"metadata.labels.app\.kubernetes\.io/name == ray",
        "status.state",
        "!status.finished",
        'status.message == "two, of 3"',
        "status.state.phase in (Pending), !status.failed",
    ],
)
def test_it_holds(condition: str) -> None:
    assert all(part.holds(JOB) for part in conditions.parse(condition))


@pytest.mark.parametrize(
    "condition",
    [
        "status.phase == Succeeded",
        "status.phase in (Succeeded, Failed)",
        "status.phase notin (Running)",
        "status.absent == x",
        "status.absent > 0",
        "status.phase > 1",
        "status.ready > 2",
        "status.conditions.7.type == Ready",
        "status.conditions.#(type==Failed).status == True",
        "status.conditions.type == Ready",
        "!status.phase",
        "status.finished",
        "status.phase == Running, status.ready > 5",
    ],
)
def test_it_does_not_hold(condition: str) -> None:
    assert not all(part.holds(JOB) for part in conditions.parse(condition))


@pytest.mark.parametrize(
    ("condition", "words"),
    [
        ("status.phase ==", "until: 'status.phase ==' can't be read. write path == value"),
        ("status.phase == Running && status.ready", "can't be read"),
        ("status.phase = Done, == x", "until: '== x' can't be read"),
        ("status.ready > many", "until: 'many' is no number. compare status.ready with one, or by ==."),
        ("status.phase in Succeeded", "can't be read"),
    ],
)
def test_what_can_not_be_read_is_said(condition: str, words: str) -> None:
    with pytest.raises(UsageError) as caught:
        conditions.parse(condition, "until")
    assert words in str(caught.value)


def test_how_it_stands_is_a_sentence() -> None:
    first, second = conditions.parse("status.phase == Succeeded, status.absent in (a,b)")
    assert f"{first.stands(JOB)}, wanted: {first}" == "status.phase is Running, wanted: status.phase == Succeeded"
    assert f"{second.stands(JOB)}, wanted: {second}" == "status.absent is not there, wanted: status.absent in (a, b)"


def test_values_as_they_are_handed_on() -> None:
    assert conditions.text(conditions.found(JOB, "status.ready")) == "2"
    assert conditions.text(conditions.found(JOB, "status.state")) == '{"phase":"Pending"}'
    assert conditions.found(JOB, "status.url") is conditions.NOTHING
