"""Plain Kubernetes Job: one pod."""

from typing import Any

from trainyard.kinds.pods import Part, literal, template
from trainyard.kinds.spec import JobSpec
from trainyard.kinds.team_config import TeamConfig
from trainyard.names import QUEUE


def build(spec: JobSpec, team_config: TeamConfig, queue: str) -> dict[str, Any]:
    """Builds the job's spec."""
    pod = template(spec, team_config, Part("main", tuple(literal(spec.command)), gpus=True, uploads=True))
    pod["spec"]["restartPolicy"] = "Never"
    # Volcano makes the PodGroup of a pod without one; this names its queue.
    pod["metadata"]["annotations"] = {QUEUE: queue}
    return {
        "backoffLimit": spec.retries,
        "activeDeadlineSeconds": spec.deadline,
        "ttlSecondsAfterFinished": spec.keep,
        "template": pod,
    }
