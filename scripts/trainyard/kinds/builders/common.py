"""Shared parts of the builders: replicas, the run policy of training-operator, and the start of a node's ranks."""

from pathlib import Path
from typing import Any

from trainyard.kinds import registry
from trainyard.kinds.pods import Part, literal, template
from trainyard.kinds.spec import JobSpec
from trainyard.kinds.team_config import TeamConfig

Object = dict[str, Any]
PYTHONS = ("python", "python3")
RANKS = Path(__file__).parent.with_name("ranks.py")


def replica(count: int, pod: Object, spec: JobSpec) -> Object:
    """Replicas of one role, in the operators' format."""
    return {"replicas": count, "restartPolicy": "OnFailure" if spec.retries else "Never", "template": pod}


def run_policy(spec: JobSpec, team_config: TeamConfig, queue: str, members: int) -> Object:
    """The run policy of training-operator: queue, gang, deadline and clean-up."""
    gang: Object = {"queue": queue, "minAvailable": members}
    if priority := spec.priority or team_config.team.priority:
        gang["priorityClass"] = priority
    return {
        # Finished pods stay for their logs; pods that still run when the job has ended are deleted and free their GPUs.
        "cleanPodPolicy": "Running",
        "ttlSecondsAfterFinished": spec.keep,
        "activeDeadlineSeconds": spec.deadline,
        # The operator ends the job when restarts reach this number, so it is one more than the allowed restarts.
        "backoffLimit": spec.retries + 1,
        "schedulingPolicy": gang,
    }


def started(spec: JobSpec) -> list[str]:
    """The command; `python train.py` with several ranks per node is wrapped in `ranks`, any other is unchanged."""
    words = list(spec.command)
    if spec.ranks_per_node == 1 or words[0].rpartition("/")[2] not in PYTHONS or len(words) == 1:
        return literal(words)
    if words[1:3] == ["-m", "torch.distributed.run"]:
        return literal(words)
    return literal([words[0], "-c", RANKS.read_text(), str(spec.ranks_per_node), *words[1:]])


def workers_job(spec: JobSpec, team_config: TeamConfig, queue: str) -> Object:
    """Spec of a job with workers only; the first worker uploads the results."""
    kind = registry.of_framework(spec.framework)
    command = tuple(literal(spec.command))
    worker = template(spec, team_config, Part(kind.container, command, gpus=True, uploads=True, uploader="-worker-0"))
    replicas = {"Worker": replica(spec.nodes, worker, spec)}
    return {"runPolicy": run_policy(spec, team_config, queue, spec.nodes), kind.replicas: replicas}


def master_job(spec: JobSpec, team_config: TeamConfig, queue: str) -> Object:
    """Spec of a job with a master, which uploads the results, and workers for the other nodes."""
    kind = registry.of_framework(spec.framework)
    command = tuple(started(spec))
    replicas = {
        "Master": replica(1, template(spec, team_config, Part(kind.container, command, gpus=True, uploads=True)), spec)
    }
    if spec.nodes > 1:
        worker = template(spec, team_config, Part(kind.container, command, gpus=True))
        replicas["Worker"] = replica(spec.nodes - 1, worker, spec)
    return {"runPolicy": run_policy(spec, team_config, queue, spec.nodes), kind.replicas: replicas}
