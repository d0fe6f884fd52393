"""A CronJob that is run at once: with its variables, to its end, and removed afterwards."""

import json
from types import SimpleNamespace
from typing import Any

import pytest

from trainyard_dev.e2e import cronjobs
from trainyard_dev.e2e.recorder import CheckError


class FakeKubectl:
    """A cluster in which a job ends with one condition after a few polls."""

    def __init__(self, condition: str) -> None:
        self.condition, self.polls = condition, 0
        self.applied: list[Any] = []
        self.deleted: list[str] = []

    def __call__(self, *words: str, **more: Any) -> SimpleNamespace:
        if words[0] == "create":
            spec = {"template": {"spec": {"containers": [{"name": "restore", "env": [{"name": "A", "value": "1"}]}]}}}
            return SimpleNamespace(stdout=json.dumps({"metadata": {"name": words[2]}, "spec": spec}))
        if words[0] == "delete":
            self.deleted.append(words[2])
        return SimpleNamespace(stdout="one\ntwo\n")

    def apply(self, objects: list[Any], namespace: str) -> None:
        self.applied += objects

    def get(self, *words: str) -> list[dict[str, Any]]:
        self.polls += 1
        done = [{"type": self.condition, "status": "True", "message": "BackoffLimitExceeded"}] if self.polls > 2 else []
        return [{"status": {"conditions": done}}]


def run(condition: str, monkeypatch: pytest.MonkeyPatch, **more: Any) -> tuple[FakeKubectl, Any]:
    monkeypatch.setattr(cronjobs.time, "sleep", lambda seconds: None)
    kubectl = FakeKubectl(condition)
    context: Any = SimpleNamespace(kubectl=kubectl)
    try:
        return kubectl, cronjobs.run(context, "trainyard-restore", {"RESTORE_FROM": "latest"}, **more)
    except CheckError as error:
        return kubectl, error


def test_variables_are_added_and_the_job_is_removed(monkeypatch: pytest.MonkeyPatch) -> None:
    kubectl, log = run("Complete", monkeypatch)
    assert log == "one\ntwo"
    job = kubectl.applied[0]
    env = job["spec"]["template"]["spec"]["containers"][0]["env"]
    assert env == [{"name": "A", "value": "1"}, {"name": "RESTORE_FROM", "value": "latest"}]
    assert job["spec"]["backoffLimit"] == 0
    assert kubectl.deleted == [job["metadata"]["name"]]


def test_failure_has_the_end_of_the_log(monkeypatch: pytest.MonkeyPatch) -> None:
    kubectl, error = run("Failed", monkeypatch)
    assert "the job of trainyard-restore failed: BackoffLimitExceeded: one | two" in str(error)
    assert kubectl.deleted


def test_job_that_never_ends_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    kubectl, error = run("Never", monkeypatch, timeout=0)
    assert "did not end within 0 s" in str(error)
    assert kubectl.deleted
