"""Before an upgrade: ends a Deployment of this namespace that others take over from, its pods included."""

from __future__ import annotations

from trainyard_agent.api import Api, ApiError
from trainyard_agent.clock import Clock
from trainyard_agent.say import PlatformError

# The Deployment stays until what it has made is gone.
OPTIONS = {"apiVersion": "v1", "kind": "DeleteOptions", "propagationPolicy": "Foreground"}


def gone(api: Api, path: str) -> str:
    """ "" once it is gone, else why not yet; asks for its end. Raises PlatformError."""
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
    """Waits until it is gone. Raises PlatformError with the reason."""
    path = f"/apis/apps/v1/namespaces/{api.namespace}/deployments/{deployment}"
    clock.wait(f"the end of Deployment {deployment}", lambda: gone(api, path))


def run(deployment: str, timeout: float) -> int:
    """Raises PlatformError with the reason."""
    end(Api(), deployment, Clock(timeout))
    return 0
