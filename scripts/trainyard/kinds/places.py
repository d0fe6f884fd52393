"""API paths of jobs, and the order of their pods."""

from collections.abc import Mapping
from typing import Any

from trainyard.kinds.status import plural

# A pod's position in its job, from its operator's labels; the first of these roles represents the job.
ROLES = ("master", "chief", "launcher", "worker", "ps")
ROLE_LABELS = ("training.kubeflow.org/replica-type", "volcano.sh/task-spec")
INDEX_LABELS = ("training.kubeflow.org/replica-index", "volcano.sh/task-index")


def path_of(manifest: Mapping[str, Any]) -> str:
    """API path of the jobs of this kind and namespace."""
    namespace = manifest["metadata"]["namespace"]
    return f"/apis/{manifest['apiVersion']}/namespaces/{namespace}/{plural(dict(manifest))}"


def place_of(pod: Mapping[str, Any]) -> tuple[int, int, str]:
    """Sort key of a pod in its job, with its name there, such as worker-1; the pod that represents the job is first."""
    labels = pod["metadata"].get("labels") or {}
    role = next((labels[name] for name in ROLE_LABELS if labels.get(name)), "pod")
    index = next((labels[name] for name in INDEX_LABELS if labels.get(name, "").isdigit()), "0")
    order = ROLES.index(role) if role in ROLES else len(ROLES)
    return order, int(index), f"{role}-{index}"
