"""XGBoostJob: a master that runs the tracker, and workers."""

from __future__ import annotations

from typing import Any

from trainyard.kinds.builders.common import master_and_workers, run_policy
from trainyard.kinds.facts import Facts
from trainyard.kinds.pods import literal
from trainyard.kinds.spec import JobSpec


def build(spec: JobSpec, facts: Facts, queue: str) -> dict[str, Any]:
    """The job's spec."""
    return {
        "runPolicy": run_policy(spec, facts, queue, spec.nodes),
        "xgbReplicaSpecs": master_and_workers(spec, facts, "xgboost", tuple(literal(spec.command))),
    }
