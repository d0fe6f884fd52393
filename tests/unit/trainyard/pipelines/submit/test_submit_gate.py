"""Gating at submission: which runs may be submitted when, and what `--after-started` waits for."""

from __future__ import annotations

from typing import Any

import pytest

from trainyard.kube import KubeError
from trainyard.pipelines.submit import turn
from trainyard.pipelines.submit.gate import Turn, next_turns

FIRST, SECOND, OTHER = Turn("first", "q"), Turn("second", "q"), Turn("other", "p")
HIGH = Turn("high", "q", 10)


@pytest.mark.parametrize(
    ("line", "waiting", "go"),
    [
        ([FIRST, SECOND, OTHER], [], [FIRST, OTHER]),  # the first of each queue
        ([SECOND], [FIRST], []),  # until the one before has started
        ([SECOND], [], [SECOND]),
        ([SECOND], [OTHER], [SECOND]),  # other queues are not waited for
        ([FIRST, HIGH], [], [HIGH]),  # a higher priority goes first
        ([SECOND, HIGH], [FIRST], [HIGH]),  # and is not kept by a lower one that waits
        ([FIRST], [HIGH], []),  # a lower priority waits for a higher one
        ([], [FIRST], []),
    ],
)
def test_who_goes_next(line: list[Turn], waiting: list[Turn], go: list[Turn]) -> None:
    assert next_turns(line, waiting) == go


CLASSES = [{"metadata": {"name": name}, "value": value} for name, value in (("low", 1), ("normal", 10), ("high", 100))]


class Cluster:
    """A team's namespace as it is at each poll, the last one for good."""

    namespace = "vision"

    def __init__(self, *polls: dict[str, list[dict[str, Any]]]) -> None:
        self.polls = list(polls)

    def path(self, version: str, resource: str, name: str = "", **_: Any) -> str:
        return resource

    def list(self, path: str, **_: str) -> list[dict[str, Any]]:
        if path == "priorityclasses":
            return CLASSES
        if path not in self.polls[0]:
            raise KubeError("no such kind", status=404)
        found = self.polls[0][path]
        if path == "podgroups" and len(self.polls) > 1:
            self.polls.pop(0)
        return found


def run(name: str, step: str = "Pending", phase: str = "Running", queue: str = "q", **spec: Any) -> dict[str, Any]:
    pod = {"id": "p", "name": f"{name}.a", "displayName": "a", "type": "Pod", "phase": step, "boundaryID": name}
    root = {"id": name, "name": name, "displayName": name, "type": "DAG", "phase": phase}
    places = {"podMetadata": {"annotations": {"scheduling.volcano.sh/queue-name": queue}}}
    return {
        "metadata": {"name": name, "namespace": "vision"},
        "spec": {"podPriorityClassName": "normal", **places, **spec},
        "status": {"phase": phase, "nodes": {name: root, "p": pod}},
    }


def group(
    name: str, phase: str = "Inqueue", queue: str = "q", kind: str = "PyTorchJob", priority: str = "normal"
) -> Any:
    owner = {"kind": kind, "name": name}
    return {
        "metadata": {"name": f"pg-{name}", "ownerReferences": [owner]},
        "spec": {"queue": queue, "priorityClassName": priority},
        "status": {"phase": phase},
    }


def waited(priority: str, *polls: dict[str, list[dict[str, Any]]]) -> list[str]:
    """The lines printed while waiting for a turn in queue q."""
    said: list[str] = []
    turn.wait(Cluster(*polls), "q", priority, said.append, 0)  # type: ignore[arg-type]
    return said


def test_what_has_started_is_not_waited_for() -> None:
    runs = [run("a", "Running"), run("b", phase="Failed"), run("c", queue="p"), run("d", suspend=True)]
    groups = [group("e", "Running"), group("f", queue="p"), group("g", "Completed"), group("a", kind="Workflow")]
    assert waited("normal", {"workflows": runs, "podgroups": groups}) == []
    note = {"scheduling.k8s.io/group-name": "pg-h"}
    gone = {"metadata": {"name": "h-0", "annotations": note}, "status": {"phase": "Succeeded"}}
    assert waited("normal", {"podgroups": [group("h")], "pods": [gone]}) == []


def test_runs_and_jobs_that_wait_are_waited_for_by_name() -> None:
    first = {"workflows": [run("a")], "podgroups": [group("b"), group("c", "Pending")]}
    second = {"workflows": [run("a", "Running")], "podgroups": [group("b")]}
    assert waited("normal", first, first, second, {"workflows": [], "podgroups": []}) == [
        "waiting until run a, PyTorchJob b, PyTorchJob c have started in queue q",
        "waiting until PyTorchJob b has started in queue q",
    ]


def test_lower_classes_are_passed_and_higher_ones_are_not() -> None:
    poll = {"podgroups": [group("b", priority="normal")]}
    assert waited("high", poll) == []
    assert waited("low", poll, {"podgroups": []}) == ["waiting until PyTorchJob b has started in queue q"]


def test_whoever_stops_waiting_is_told_that_nothing_was_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(_: float) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(turn.time, "sleep", interrupted)
    said: list[str] = []
    with pytest.raises(KeyboardInterrupt):
        turn.wait(Cluster({"podgroups": [group("b")]}), "q", "normal", said.append)  # type: ignore[arg-type]
    assert said[-1] == "nothing was sent"
