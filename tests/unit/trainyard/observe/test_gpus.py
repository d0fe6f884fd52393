"""`trainyard gpus`: what queues hold and may use, unknown values, and outdated numbers."""

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from trainyard.kube import KubeError
from trainyard.observe import gpus

POOL = {"pool": "gpu", "model": "H100", "resource": "nvidia.com/gpu", "nodes": 2, "gpus": 16, "held": 4, "free": 12,
        "out": 0, "fits": {"8": 1, "4": 1}}  # fmt: skip
WAIT = {"waiting": {"jobs": 0, "gpus": 0}, "started": {"jobs": 0}}


class _Kube:
    """A cluster with the platform's numbers and one queue, or the error that its reading gives."""

    host, namespace = "https://example.org", "vision"

    def __init__(self, queue: Any, age_s: float = 5) -> None:
        at = (datetime.now(UTC) - timedelta(seconds=age_s)).strftime("%Y-%m-%dT%H:%M:%SZ")
        common = {"schema": gpus.SCHEMA, "at": at, "everySeconds": 30}
        own = {**common, "held": [{"pool": "gpu", "model": "H100", "gpus": 3}], "queues": [{"queue": "vision", **WAIT}]}
        shared = {**common, "pools": [POOL], "waiting": {"jobs": 0, "gpus": 0}}
        self.said = {gpus.MAP: shared, f"{gpus.MAP}-vision": own}
        self.queue = queue

    def path(self, api: str, plural: str, name: str, namespace: str) -> str:
        return name

    def find(self, name: str) -> Any:
        if name in self.said:
            return {"data": {gpus.KEY: json.dumps(self.said[name])}}
        if isinstance(self.queue, Exception):
            raise self.queue
        return self.queue


def seen(queue: Any, age_s: float = 5) -> dict[str, Any]:
    return gpus.read(_Kube(queue, age_s))  # type: ignore[arg-type]


def line(queue: Any) -> list[str]:
    return next(one for one in gpus.lines(seen(queue)) if one.startswith("vision")).split()


@pytest.mark.parametrize(
    ("spec", "may_use"),
    [({"capability": {"nvidia.com/gpu": "16", "cpu": "4"}}, "16"), ({"capability": {"cpu": "4"}}, "0"), ({}, "all")],
    ids=["bound", "bound without GPUs", "no bound"],
)
def test_what_a_queue_holds_and_may_use(spec: dict[str, Any], may_use: str) -> None:
    queue = {"spec": spec, "status": {"allocated": {"nvidia.com/gpu": "4"}}}
    assert line(queue)[1:3] == ["4", may_use]
    assert not gpus.warnings(seen(queue), "vision")


@pytest.mark.parametrize(
    ("queue", "why"),
    [
        (KubeError("queues.scheduling.volcano.sh is forbidden", status=403), "is forbidden"),
        (KubeError("the API server does not answer"), "does not answer"),
        (None, "it isn't there"),
    ],
)
def test_what_is_not_known_is_not_shown_as_free(queue: Any, why: str) -> None:
    assert line(queue)[1:3] == ["?", "?"]
    [said] = gpus.warnings(seen(queue), "vision")
    assert said.startswith("what queue vision holds and may use is unknown: ") and said.endswith(why)
    [one] = seen(queue)["queues"]
    assert one["held"] is None and one["deserved"] is None and one["unknown"]


@pytest.mark.parametrize(("age_s", "late"), [(100, False), (130, True)])
def test_numbers_of_a_silent_pod_are_called_old(age_s: float, late: bool) -> None:
    found = seen({"spec": {}}, age_s)
    assert found["late"] == late
    assert bool(gpus.warnings(found, "vision")) == late
    if late:
        assert "2m10s old: the pod trainyard-gpu-view may have stopped" in gpus.warnings(found, "vision")[0]


def test_the_own_share_of_a_pool_is_shown() -> None:
    assert seen({"spec": {}})["pools"][0]["yours"] == 3
