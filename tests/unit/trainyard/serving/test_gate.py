"""How a version goes into service: the gate, the image of its step, and the progress of its Deployment."""

import json
from typing import Any

import pytest

from trainyard.errors import TrainyardError, UsageError
from trainyard.pipelines.steps import models
from trainyard.serving import cards, gate, rollout, settings, versions


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
    assert not held.passed and "digits@1 has accuracy 0.5, 0.9 is required: it stays out" in str(gate.held(held))


def test_a_number_that_was_not_measured_is_said() -> None:
    with pytest.raises(UsageError, match=r"digits@1 was not measured by accuracy; its card has loss"):
        gate.judge(card("1", loss=0.1), None)
    with pytest.raises(UsageError, match=r"digits@1 was not measured by accuracy; its card has none"):
        gate.judge(card("2", accuracy=1), card("1"))


NOTES = {versions.VERSION: "v1", versions.SOURCE: "s3://runs/vision/models/digits/v1"}
NEXT = versions.Served("v2", "sha256:2", "s3://runs/vision/models/digits/v2", "server-torch:1")


class Jobs:
    """One Deployment, and what it is changed by."""

    namespace = "vision"

    def __init__(self, **noted: str) -> None:
        pod = {"initContainers": [{"name": "model", "args": []}], "containers": [{"name": "server", "image": "now:1"}]}
        self.found = {
            "metadata": {"name": "model-digits", "annotations": {settings.NOTE: json.dumps(noted)}},
            "spec": {"template": {"metadata": {"annotations": NOTES}, "spec": pod}},
        }
        self.patch: list[dict[str, Any]] = []

    def ask(self, method: str, path: str, body: Any = None, *_: Any) -> Any:
        if method == "PATCH":
            self.patch = body
        return self.found


@pytest.mark.parametrize(
    ("noted", "image"),
    [({}, "server-torch:1"), ({"runtime": "model-server"}, "server-torch:1"), ({"runtime": "triton"}, "now:1")],
)
def test_another_server_keeps_its_image(noted: dict[str, str], image: str) -> None:
    jobs: Any = Jobs(**noted)
    assert models._change(jobs, "digits", NEXT).version == "v1"
    [said] = [one["value"] for one in jobs.patch if one["path"].endswith("/image")]
    assert said == image


TIMED_OUT = {"type": "Progressing", "reason": "ProgressDeadlineExceeded", "message": "ReplicaSet a has timed out"}
REFUSED = {"type": "ReplicaFailure", "status": "True", "message": "exceeded quota"}


def deployment(seen: int, *conditions: dict[str, str], new: int = 1, ready: int = 1) -> dict[str, Any]:
    status = {"observedGeneration": seen, "updatedReplicas": new, "replicas": 2, "availableReplicas": ready}
    return {"metadata": {"name": "model-digits", "generation": 7}, "spec": {"replicas": 2},
            "status": {**status, "conditions": list(conditions)}}  # fmt: skip


@pytest.mark.parametrize("condition", [TIMED_OUT, REFUSED])
def test_what_is_said_of_an_earlier_change_fails_nothing(condition: dict[str, str]) -> None:
    assert rollout.ready(deployment(6, condition)) == (False, "its controller has not seen it yet")
    with pytest.raises(TrainyardError, match=r"timed out|exceeded quota"):
        rollout.ready(deployment(7, condition))


def test_it_is_ready_when_all_pods_are_new_and_answer() -> None:
    assert rollout.ready(deployment(7, new=2, ready=2)) == (True, "2 of 2 replicas are ready")
    assert rollout.ready(deployment(7, new=2, ready=1)) == (False, "2 of 2 replicas are new, 1 ready")
    assert rollout.ready(deployment(6, new=2, ready=2))[0] is False
