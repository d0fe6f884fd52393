"""PaddleJob: workers that find each other by the first one's address."""

from __future__ import annotations

from typing import Any

from trainyard.kinds.builders.common import run_policy, workers_only
from trainyard.kinds.facts import Facts
from trainyard.kinds.pods import literal
from trainyard.kinds.spec import JobSpec


def build(spec: JobSpec, facts: Facts, queue: str) -> dict[str, Any]:
    """The job's spec."""
    return {
        "runPolicy": run_policy(spec, facts, queue, spec.nodes),
        "paddleReplicaSpecs": workers_only(spec, facts, "paddle", tuple(literal(spec.command))),
    }
