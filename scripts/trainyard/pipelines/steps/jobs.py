"""Jobs of one namespace: created once, read patiently, deleted. Waits while the API server is unavailable."""

import time
from collections.abc import Callable, Mapping
from typing import Any

from trainyard.errors import TrainyardError
from trainyard.kinds import places as kinds
from trainyard.kinds.status import FAILED, RUNNING, STOPPED, SUCCEEDED, outcome
from trainyard_agent.api import Api, ApiError

Object = dict[str, Any]
PATIENCE_S = 600.0
LONGEST_WAIT_S = 10.0
GONE_S = 180.0  # how long the deletion of an earlier attempt's pods may take
OVER = {FAILED: "failed", STOPPED: "was stopped"}
STANDS = {RUNNING: "has not ended", SUCCEEDED: "has succeeded"}
PASSING = (0, 408, 409, 429, 500, 502, 503, 504)


class Jobs:
    """API calls of one step; `clock` and `sleep` are there for tests."""

    def __init__(
        self,
        api: Api,
        namespace: str,
        *,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self.api, self.namespace, self.clock, self.sleep = api, namespace, clock, sleep
        self._core = f"/api/v1/namespaces/{namespace}"

    def ask(
        self,
        method: str,
        path: str,
        body: Any = None,
        query: dict[str, str] | None = None,
        content: str = "application/json",
    ) -> Object:
        """One request, retried for ten minutes while the API is unavailable. Raises ApiError if it refuses."""
        end, wait, announced = self.clock() + PATIENCE_S, 0.5, False
        while True:
            try:
                return self.api.call(method, path, body, query=query, content=content)
            except ApiError as error:
                if error.status not in PASSING or (error.status == 409 and method in ("POST", "PATCH")):
                    raise
                if self.clock() + wait > end:
                    what = f"the API server was unavailable for {PATIENCE_S:.0f} s: {error.message}"
                    raise TrainyardError(what, hint="retry the run; the job is adopted as it then stands") from None
                if not announced and wait > 1:
                    print(f"the API server does not answer ({error.message}); asking again", flush=True)
                    announced = True
                self.sleep(wait)
                wait = min(wait * 2, LONGEST_WAIT_S)

    def find(self, manifest: Mapping[str, Any]) -> Object | None:
        """The job's current object, or None."""
        try:
            return self.ask("GET", f"{kinds.path_of(manifest)}/{manifest['metadata']['name']}")
        except ApiError as error:
            if error.status == 404:
                return None
            raise _refused(manifest, "can't be read", error) from None

    def adopt(self, manifest: Object) -> Object:
        """Creates the job, or adopts an earlier attempt's, running or finished. A failed one is created again.

        Raises:
            TrainyardError: it is refused, or another run has a job of this name.
        """
        name = f"{manifest['kind']} {manifest['metadata']['name']}"
        while True:
            found = self.find(manifest)
            if found is not None:
                if _owner(found) != _owner(manifest):
                    raise TrainyardError(f"{name} already exists and belongs to another run", hint="delete it")
                phase, _ = outcome(found)
                if found["metadata"].get("deletionTimestamp"):
                    self._wait_gone(manifest)
                elif phase in OVER:
                    print(f"{name} of an earlier attempt {OVER[phase]}: it is created again", flush=True)
                    self.delete(manifest)
                    self._wait_gone(manifest)
                else:
                    print(f"{name} of an earlier attempt {STANDS[phase]}: adopted", flush=True)
                    return found
            try:
                made = self.ask("POST", kinds.path_of(manifest), manifest)
                print(f"created {name} in {self.namespace}", flush=True)
                return made
            except ApiError as error:
                if error.status != 409:
                    raise _refused(manifest, "was refused", error) from None

    def delete(self, manifest: Mapping[str, Any]) -> bool:
        """Deletes the job and its pods; False if there was none."""
        try:
            path = f"{kinds.path_of(manifest)}/{manifest['metadata']['name']}"
            self.ask("DELETE", path, {"propagationPolicy": "Foreground"})
            return True
        except ApiError as error:
            if error.status == 404:
                return False
            raise _refused(manifest, "can't be deleted", error) from None

    def pods(self, label: str, job: str) -> list[Object]:
        """The job's pods, the main one first."""
        found = self.ask("GET", f"{self._core}/pods", query={"labelSelector": f"{label}={job}"}).get("items", [])
        return sorted(found, key=kinds.place_of)

    def warnings(self, manifest: Mapping[str, Any], uid: str) -> list[Object]:
        """Warnings about the job itself, oldest first."""
        chosen = (
            f"type=Warning,involvedObject.name={manifest['metadata']['name']},involvedObject.kind={manifest['kind']}"
        )
        found = self.ask("GET", f"{self._core}/events", query={"fieldSelector": chosen}).get("items", [])
        return [event for event in found if event.get("involvedObject", {}).get("uid", uid) == uid]

    def log(self, pod: str, container: str, lines: int) -> list[str]:
        """The last lines of a container; none without a log."""
        query = {"container": container, "tailLines": str(lines)}
        try:
            text = self.api.text(f"{self._core}/pods/{pod}/log", query)
        except ApiError:
            return []
        return [line for line in text.splitlines() if line.strip()]

    def _wait_gone(self, manifest: Mapping[str, Any]) -> None:
        end = self.clock() + GONE_S
        while self.find(manifest) is not None:
            if self.clock() > end:
                what = f"{manifest['metadata']['name']} of an earlier attempt was not deleted within {GONE_S:.0f} s"
                raise TrainyardError(what, hint="look at its pods: a finalizer or a node may hold them")
            self.sleep(1.0)


def _owner(job: Mapping[str, Any]) -> list[str]:
    return [owner.get("uid", "") for owner in job["metadata"].get("ownerReferences") or []]


def _refused(manifest: Mapping[str, Any], what: str, error: ApiError) -> TrainyardError:
    return TrainyardError(f"{manifest['kind']} {manifest['metadata']['name']} {what}: {error.message}")
