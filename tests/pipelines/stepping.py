"""Steps that run beside a test, and the test's view of what they make: what controllers write, tests write."""

import threading
from collections.abc import Callable
from typing import Any

from trainyard.errors import TrainyardError
from trainyard_dev.apiserver import ApiServer
from waiting import wait

TEAM = "vision"


class Step(threading.Thread):
    """A step that runs beside the test; `value` is its output, `error` its failure."""

    def __init__(self, act: Callable[[], Any]) -> None:
        super().__init__(daemon=True)
        self.act, self.value, self.error = act, "", ""
        self.start()

    def run(self) -> None:
        try:
            self.value = self.act()
        except TrainyardError as error:
            self.error = str(error)

    def ended(self, seconds: float = 60.0) -> str:
        self.join(seconds)
        assert not self.is_alive(), "the step goes on"
        return self.error


class Made:
    """An object of the team; `title` is its kind and name."""

    def __init__(self, server: ApiServer, title: str, version: str = "batch/v1", plural: str = "jobs") -> None:
        self.own, self.title = server.connection(), title
        self.path = f"/apis/{version}/namespaces/{TEAM}/{plural}/{title.split()[1]}"

    def find(self) -> dict[str, Any] | None:
        answer = self.own.call("GET", self.path)
        return answer.body if answer.ok else None

    def wait(self) -> dict[str, Any]:
        return dict(wait(self.find, self.title))

    def anew(self, uid: str) -> dict[str, Any]:
        """The one that follows the one with this uid."""
        return dict(wait(lambda: (one := self.find()) and one["metadata"]["uid"] != uid and one, "the new one"))

    def say(self, status: dict[str, Any]) -> None:
        answer = self.own.call("PUT", f"{self.path}/status", {**self.wait(), "status": status})
        assert answer.ok, answer.message

    def warn(self, reason: str, message: str) -> None:
        made = self.wait()
        about = {"kind": made["kind"], "apiVersion": made["apiVersion"], "namespace": TEAM}
        about |= {one: made["metadata"][one] for one in ("name", "uid")}
        event = {"apiVersion": "v1", "kind": "Event", "type": "Warning", "reason": reason, "message": message}
        event |= {"metadata": {"generateName": "refused-", "namespace": TEAM}, "involvedObject": about}
        assert self.own.call("POST", f"/api/v1/namespaces/{TEAM}/events", event).ok

    def collect_garbage(self) -> None:
        """What the garbage collector does at the end of a foreground deletion."""
        found = wait(lambda: (one := self.find()) and one["metadata"].get("deletionTimestamp") and one, "the deletion")
        found["metadata"]["finalizers"] = []
        assert self.own.call("PUT", self.path, found).ok
