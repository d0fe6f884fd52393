"""A kubelet whose pods are processes: each notebook gets an address of its own, its environment and its Secret."""

import base64
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from trainyard_dev.apiserver import ApiServer
from trainyard_dev.apiserver.processes import Server

SERVED = Path(__file__).parent / "served.py"
LABEL = "labelSelector=trainyard.io/notebook%3Dtrue"


class Node:
    """Runs pods that are notebooks. `environments` are those that they got, by pod's name."""

    def __init__(self, server: ApiServer, python: Path, folder: Path) -> None:
        self.server, self.python, self.folder = server, python, folder
        self.environments: dict[str, dict[str, str]] = {}
        self._running: dict[str, Server] = {}
        self._addresses = iter(f"127.0.77.{number}" for number in range(2, 250))
        self._client = server.connection()
        self._over = False

    def watch(self) -> None:
        """Follows pods until the server ends it."""
        for event in self.server.watch(f"/api/v1/pods?{LABEL}"):
            if self._over:
                return
            pod = event["object"]
            uid = pod.get("metadata", {}).get("uid", "")
            if event["type"] == "DELETED" or pod.get("metadata", {}).get("deletionTimestamp"):
                self._end(uid)
            elif event["type"] in ("ADDED", "MODIFIED") and uid not in self._running:
                self._start(pod, uid)

    def _start(self, pod: dict[str, Any], uid: str) -> None:
        meta, container = pod["metadata"], pod["spec"]["containers"][0]
        held = self._secret(meta["namespace"], container["envFrom"][0]["secretRef"]["name"])
        if held is None:  # as kubelet does: it looks again
            threading.Timer(0.2, self._again, (meta["namespace"], meta["name"], uid)).start()
            return
        told = {one["name"]: one["value"] for one in container["env"] if "value" in one} | held
        self.environments[meta["name"]] = told
        address = next(self._addresses)
        log = self.folder / f"{meta['name']}-{uid[:6]}.log"
        self._running[uid] = Server([self.python, SERVED, address], log, told)
        state = {"name": "notebook", "ready": True, "restartCount": 0, "image": container["image"], "imageID": ""}
        state["state"] = {"running": {"startedAt": meta["creationTimestamp"]}}
        status = {"phase": "Running", "podIP": address, "podIPs": [{"ip": address}], "containerStatuses": [state]}
        patch = [{"op": "replace", "path": "/status", "value": status}]
        answer = self._client.patch(pod | {"apiVersion": "v1", "kind": "Pod"}, patch, sub="status")
        assert answer.ok, answer.message

    def _again(self, namespace: str, name: str, uid: str) -> None:
        client = self.server.connection()
        found = client.call("GET", f"/api/v1/namespaces/{namespace}/pods/{name}")
        if found.ok and found.body["metadata"]["uid"] == uid and not self._over:
            # A change of the pod shows it to the watch once more.
            note = {"metadata": {"annotations": {"looked": str(time.monotonic_ns())}}}
            client.call(
                "PATCH", f"/api/v1/namespaces/{namespace}/pods/{name}", note, content="application/merge-patch+json"
            )

    def _secret(self, namespace: str, name: str) -> dict[str, str] | None:
        found = self._client.call("GET", f"/api/v1/namespaces/{namespace}/secrets/{name}")
        if not found.ok:
            return None
        return {key: base64.b64decode(value).decode() for key, value in found.body["data"].items()}

    def _end(self, uid: str) -> None:
        if process := self._running.pop(uid, None):
            process.stop()

    def stop(self) -> None:
        """Ends all of them."""
        self._over = True
        for uid in list(self._running):
            self._end(uid)


@contextmanager
def running(server: ApiServer, python: Path, folder: Path) -> Iterator[Node]:
    """One for the time of the body."""
    node = Node(server, python, folder)
    thread = threading.Thread(target=node.watch, daemon=True)
    thread.start()
    try:
        yield node
    finally:
        node.stop()
