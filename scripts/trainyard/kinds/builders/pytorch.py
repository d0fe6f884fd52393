"""PyTorchJob: a master and workers, each with a rank for every GPU."""

from __future__ import annotations

from typing import Any

from trainyard.kinds.builders.common import master_and_workers, run_policy, started
from trainyard.kinds.facts import Facts
from trainyard.kinds.spec import JobSpec


def build(spec: JobSpec, facts: Facts, queue: str) -> dict[str, Any]:
    """The job's spec."""
    body: dict[str, Any] = {
        "runPolicy": run_policy(spec, facts, queue, spec.nodes),
        "pytorchReplicaSpecs": master_and_workers(spec, facts, "pytorch", tuple(started(spec))),
    }
    if spec.ranks_per_node > 1:
        body["nprocPerNode"] = str(spec.ranks_per_node)
    return body
