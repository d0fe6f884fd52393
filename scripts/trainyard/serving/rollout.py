"""Progress of a Deployment, for commands and steps of pipelines; standard library only."""

from collections.abc import Mapping
from typing import Any

from trainyard.errors import TrainyardError

LABEL = "trainyard.io/model"


def name_of(model: str) -> str:
    """Name of a model's objects."""
    return f"model-{model}"


def ready(found: Mapping[str, Any]) -> tuple[bool, str]:
    """Whether all pods of a Deployment are ready and have its newest template; else its progress.

    Raises:
        TrainyardError: the Deployment failed.
    """
    spec, status = found["spec"], found.get("status") or {}
    wanted = int(spec.get("replicas", 1))
    if int(status.get("observedGeneration", 0)) < int(found["metadata"].get("generation", 0)):
        return False, "its controller has not seen it yet"  # its conditions are about an earlier spec
    new, at_all, good = (int(status.get(key, 0)) for key in ("updatedReplicas", "replicas", "availableReplicas"))
    if new >= wanted and at_all <= new and good >= new:
        return True, f"{good} of {wanted} replicas are ready"
    for one in status.get("conditions") or []:
        if one.get("type") == "Progressing" and one.get("reason") == "ProgressDeadlineExceeded":
            raise TrainyardError(f"{found['metadata']['name']} did not get ready: {one.get('message', '')}")
        if one.get("type") == "ReplicaFailure" and one.get("status") == "True":
            raise TrainyardError(f"{found['metadata']['name']} gets no pods: {one.get('message', '')}")
    return False, f"{new} of {wanted} replicas are new, {good} ready"
