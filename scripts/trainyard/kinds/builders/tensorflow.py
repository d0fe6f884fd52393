"""TFJob: a chief, workers, and parameter servers without GPUs."""

from typing import Any

from trainyard.kinds.builders.common import replica, run_policy
from trainyard.kinds.pods import Part, literal, template
from trainyard.kinds.spec import JobSpec
from trainyard.kinds.team_config import TeamConfig


def build(spec: JobSpec, team_config: TeamConfig, queue: str) -> dict[str, Any]:
    """Builds the job's spec."""
    command = tuple(literal(spec.command))
    chief = template(spec, team_config, Part("tensorflow", command, gpus=True, uploads=True))
    replicas = {"Chief": replica(1, chief, spec)}
    if spec.nodes > 1:
        worker = template(spec, team_config, Part("tensorflow", command, gpus=True))
        replicas["Worker"] = replica(spec.nodes - 1, worker, spec)
    if spec.parameter_servers:
        server = template(spec, team_config, Part("tensorflow", command))
        replicas["PS"] = replica(spec.parameter_servers, server, spec)
    members = spec.nodes + spec.parameter_servers
    return {"runPolicy": run_policy(spec, team_config, queue, members), "tfReplicaSpecs": replicas}
