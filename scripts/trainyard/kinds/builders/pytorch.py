"""PyTorchJob: a master and workers, each with a rank for every GPU."""

from __future__ import annotations

from typing import Any

from trainyard.kinds.builders.common import master_job
from trainyard.kinds.spec import JobSpec
from trainyard.kinds.team_config import TeamConfig


def build(spec: JobSpec, team_config: TeamConfig, queue: str) -> dict[str, Any]:
    """The job's spec."""
    body = master_job(spec, team_config, queue)
    if spec.ranks_per_node > 1:
        body["nprocPerNode"] = str(spec.ranks_per_node)
    return body
