"""Before an upgrade: deletes a Deployment of this namespace that others replace, including its pods."""

from __future__ import annotations

from trainyard_agent.api import Api, ApiError
from trainyard_agent.clock import Clock
from trainyard_agent.say import PlatformError

# Foreground deletion: the Deployment stays until its pods are gone.
OPTIONS = {"apiVersion": "v1", "kind": "DeleteOptions", "propagationPolicy": "Foreground"}


def gone(api: Api, path: str) -> str:
    """The reason why the Deployment is not gone yet; "" once it is. Deletes it if necessary. Raises PlatformError."""
    try:
        found = api.get(path)
        if not found["metadata"].get("deletionTimestamp"):
            api.call("DELETE", path, OPTIONS)
    except ApiError as error:
        if error.status == 404:
            return ""
        if error.status in (0, 409, 429) or error.status >= 500:
            return error.message
        raise PlatformError(f"{path.rpartition('/')[2]} can't be ended: {error.message}") from error
    return "its pods are ending"


def end(api: Api, deployment: str, clock: Clock) -> None:
    """Deletes the Deployment and waits until it is gone. Raises PlatformError with the reason."""
    path = f"/apis/apps/v1/namespaces/{api.namespace}/deployments/{deployment}"
    clock.wait(f"the end of Deployment {deployment}", lambda: gone(api, path))


def run(deployment: str, timeout: float) -> int:
    """Deletes the Deployment within `timeout` seconds. Raises PlatformError with the reason."""
    end(Api(), deployment, Clock(timeout))
    return 0
