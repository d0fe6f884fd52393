"""Where jobs live in the API, and the order of their pods."""

from collections.abc import Mapping
from typing import Any

from trainyard.kinds.status import plural

# A pod's place in its job, as its operator labels it; the first of these roles speaks for the job.
ROLES = ("master", "chief", "launcher", "worker", "ps")
ROLE_LABELS = ("training.kubeflow.org/replica-type", "volcano.sh/task-spec")
INDEX_LABELS = ("training.kubeflow.org/replica-index", "volcano.sh/task-index")


def path_of(manifest: Mapping[str, Any]) -> str:
    """Where jobs of this kind and namespace are."""
    namespace = manifest["metadata"]["namespace"]
    return f"/apis/{manifest['apiVersion']}/namespaces/{namespace}/{plural(dict(manifest))}"


def place_of(pod: Mapping[str, Any]) -> tuple[int, int, str]:
    """A pod's order in its job, and its name there, such as worker-1; sorts the one that speaks for the job first."""
    labels = pod["metadata"].get("labels") or {}
    role = next((labels[name] for name in ROLE_LABELS if labels.get(name)), "pod")
    index = next((labels[name] for name in INDEX_LABELS if labels.get(name, "").isdigit()), "0")
    order = ROLES.index(role) if role in ROLES else len(ROLES)
    return order, int(index), f"{role}-{index}"
