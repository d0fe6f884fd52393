"""What builders share: replicas, the run policy of training-operator, and how ranks of a node are started."""

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
    """Replicas of one role, as operators take them."""
    return {"replicas": count, "restartPolicy": "OnFailure" if spec.retries else "Never", "template": pod}


def run_policy(spec: JobSpec, team_config: TeamConfig, queue: str, members: int) -> Object:
    """Queue, gang, deadline and what is left of a finished job, for training-operator."""
    gang: Object = {"queue": queue, "minAvailable": members}
    if priority := spec.priority or team_config.team.priority:
        gang["priorityClass"] = priority
    return {
        # Finished pods stay for their logs; what still runs when the job has ended holds no GPU any longer.
        "cleanPodPolicy": "Running",
        "ttlSecondsAfterFinished": spec.keep,
        "activeDeadlineSeconds": spec.deadline,
        # The operator ends the job when restarts reach this number, so one more than there may be.
        "backoffLimit": spec.retries + 1,
        "schedulingPolicy": gang,
    }


def started(spec: JobSpec) -> list[str]:
    """`python train.py` with several ranks a node is started by `ranks`; any other command as it is."""
    words = list(spec.command)
    if spec.ranks_per_node == 1 or words[0].rpartition("/")[2] not in PYTHONS or len(words) == 1:
        return literal(words)
    if words[1:3] == ["-m", "torch.distributed.run"]:
        return literal(words)
    return literal([words[0], "-c", RANKS.read_text(), str(spec.ranks_per_node), *words[1:]])


def workers_job(spec: JobSpec, team_config: TeamConfig, queue: str) -> Object:
    """The spec of a job of workers alone, the first of which uploads the results."""
    kind = registry.of_framework(spec.framework)
    command = tuple(literal(spec.command))
    worker = template(spec, team_config, Part(kind.container, command, gpus=True, uploads=True, uploader="-worker-0"))
    replicas = {"Worker": replica(spec.nodes, worker, spec)}
    return {"runPolicy": run_policy(spec, team_config, queue, spec.nodes), kind.replicas: replicas}


def master_job(spec: JobSpec, team_config: TeamConfig, queue: str) -> Object:
    """The spec of a job of one master, which uploads the results, and workers for the other nodes."""
    kind = registry.of_framework(spec.framework)
    command = tuple(started(spec))
    replicas = {
        "Master": replica(1, template(spec, team_config, Part(kind.container, command, gpus=True, uploads=True)), spec)
    }
    if spec.nodes > 1:
        worker = template(spec, team_config, Part(kind.container, command, gpus=True))
        replicas["Worker"] = replica(spec.nodes - 1, worker, spec)
    return {"runPolicy": run_policy(spec, team_config, queue, spec.nodes), kind.replicas: replicas}
