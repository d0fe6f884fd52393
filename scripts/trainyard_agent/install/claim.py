"""Makes a claim that no pod uses yet. As part of the release, `helm --wait` would wait forever for it to be bound."""

from __future__ import annotations

from typing import Any

from trainyard_agent.api import Api, ApiError
from trainyard_agent.say import PlatformError, say


def run(name: str, size: str, storage_class: str) -> int:
    """Make the claim unless it exists. Raises PlatformError."""
    api = Api()
    spec: dict[str, Any] = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": size}}}
    if storage_class:
        spec["storageClassName"] = storage_class
    body = {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": name, "labels": {"app.kubernetes.io/part-of": "trainyard"}},
        "spec": spec,
    }
    try:
        api.call("POST", f"/api/v1/namespaces/{api.namespace}/persistentvolumeclaims", body)
    except ApiError as error:
        if error.status != 409:
            raise PlatformError(f"claim {name} was not made: {error.message}") from error
        say(f"claim {name} exists")
        return 0
    say(f"claim {name} made, {size}")
    return 0
