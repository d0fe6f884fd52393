"""How an answer to an attack is judged: refused, by which guard, and for the right reason."""

from typing import Any

import pytest

from trainyard_dev.e2e.checks.attacks import GUARDS, Attempt, attempts, judge
from trainyard_dev.e2e.context import Context
from trainyard_dev.e2e.recorder import CheckError

QUEUE = Attempt("queue", "a job in another queue", ("create", "-f", "-"), "admission policy", ("queue", "vision"))
POLICY = "Error from server: ValidatingAdmissionPolicy 'trainyard-job-queue' denied request: queue vision is not yours"


@pytest.mark.parametrize(
    ("code", "answer", "error"),
    [
        (1, POLICY, ""),
        (1, f"Warning: deprecated\n{POLICY}", ""),
        (0, "job created", "the request was admitted"),
        (1, 'jobs is forbidden: User "mallory" cannot create resource', "refused by RBAC, not by admission policy"),
        (1, "connection refused", "refused by something else"),
        (1, POLICY.replace("vision", "x"), "the refusal lacks vision"),
    ],
)
def test_only_the_right_refusal_counts(code: int, answer: str, error: str) -> None:
    figures: dict[str, Any] = {}
    if not error:
        judge(figures, code, answer, QUEUE)
        assert figures["refused_by"] == "admission policy"
        assert "deprecated" not in figures["message"]
        return
    with pytest.raises(CheckError, match=error):
        judge(figures, code, answer, QUEUE)


def test_attempts_are_told_apart_and_name_a_guard() -> None:
    context = Context.__new__(Context)
    team = {"name": "speech", "maxGpusPerJob": 4}
    context.contract = {"priorityClasses": [{"name": "low", "value": 1}, {"name": "high", "value": 9}], "teams": [team]}
    context.nodes = []
    node = type("Node", (), {"name": "n", "has_gpus": True})()
    context.nodes = [node]
    made = attempts(context)
    assert len({attempt.id for attempt in made}) == len(made) > 20
    assert {attempt.guard for attempt in made} <= set(GUARDS.values())
    for attempt in made:
        assert bool(attempt.objects) == (attempt.args[:1] == ("create",) and "-f" in attempt.args), attempt.id
