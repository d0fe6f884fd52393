"""How far a Deployment is: what its controller said of an earlier change counts for nothing."""

from __future__ import annotations

from typing import Any

import pytest

from trainyard.errors import TrainyardError
from trainyard.serving import rollout

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
