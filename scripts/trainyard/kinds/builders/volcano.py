"""Volcano Job: a master and workers, without a training operator."""

from typing import Any

from trainyard.kinds.builders.common import started
from trainyard.kinds.pods import Part, template
from trainyard.kinds.spec import JobSpec
from trainyard.kinds.team_config import TeamConfig

Object = dict[str, Any]
PORT = 23456


def build(spec: JobSpec, team_config: TeamConfig, queue: str) -> Object:
    """Builds the job's spec."""
    command = tuple(started(spec))
    tasks = [("master", 1, True)] + ([("worker", spec.nodes - 1, False)] if spec.nodes > 1 else [])
    made = []
    for name, replicas, uploads in tasks:
        pod = template(spec, team_config, Part("main", command, gpus=True, uploads=uploads))
        # A Volcano Job has no deadline field, but its pods do.
        pod["spec"] |= {"restartPolicy": "Never", "activeDeadlineSeconds": spec.deadline}
        made.append({"name": name, "replicas": replicas, "template": pod})
    body: Object = {
        "schedulerName": team_config.contract.scheduler,
        "queue": queue,
        "minAvailable": spec.nodes,
        "maxRetry": spec.retries + 1,
        "ttlSecondsAfterFinished": spec.keep,
        "plugins": {
            "pytorch": ["--master=master", "--worker=worker", f"--port={PORT}"],
            "env": [],
            # A DNS name per pod, even before it is ready. The team's network policy applies, not the plugin's.
            "svc": ["--publish-not-ready-addresses=true", "--disable-network-policy=true"],
        },
        "policies": [
            {"event": "PodFailed", "action": "RestartJob" if spec.retries else "AbortJob"},
            {"event": "PodEvicted", "action": "RestartJob"},
        ],
        "tasks": made,
    }
    if priority := spec.priority or team_config.team.priority:
        body["priorityClassName"] = priority
    return body
