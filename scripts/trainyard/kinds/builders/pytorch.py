"""PyTorchJob: a master and workers, each with a rank for every GPU."""

from __future__ import annotations

from typing import Any

from trainyard.kinds.builders.common import master_job
from trainyard.kinds.facts import Facts
from trainyard.kinds.spec import JobSpec


def build(spec: JobSpec, facts: Facts, queue: str) -> dict[str, Any]:
    """The job's spec."""
    body = master_job(spec, facts, queue)
    if spec.ranks_per_node > 1:
        body["nprocPerNode"] = str(spec.ranks_per_node)
    return body
