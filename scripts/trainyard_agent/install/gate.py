"""The gate for StrictFIFO: while a queue's first job can't start, none behind it does. Volcano's extender calls it.

Volcano tries the jobs of a queue in turn, by priority and then by age, and takes the next when one doesn't fit.
Before each it asks whether the queue is overused. The gate answers yes if the job before got no place: all others wait
for the next round, which begins with the same job. That is StrictFIFO, whatever keeps the first from starting
(too few GPUs, too few on one node, the queue's own bound), in every queue for itself.
"""

from __future__ import annotations

import json
import signal
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from trainyard_agent.say import say

PIPELINED = 4  # Volcano's number for a pod that is promised resources which another still holds


class StrictFifoGate:
    """State of the scheduler's current round, gathered from its requests."""

    def __init__(self) -> None:
        self._queue = ""  # UID of the queue that Volcano is trying
        self._given: dict[str, dict[str, int]] = {}  # by queue: pods that the last job was given, with their state

    def close(self, _: dict[str, Any]) -> dict[str, Any]:
        """Ends the round."""
        self._given.clear()
        return {}

    def overused(self, said: dict[str, Any]) -> dict[str, Any]:
        """Whether the queue's next job must wait: the one before got no resources, or only a promise."""
        self._queue = said["queue"]["UID"]
        given = self._given.get(self._queue)
        if given is not None and (not given or PIPELINED in given.values()):
            return {"overused": True}
        self._given[self._queue] = {}
        return {"overused": False}

    def allocate(self, said: dict[str, Any]) -> dict[str, Any]:
        """Records that a pod of the current job was given a place."""
        self._given.setdefault(self._queue, {})[said["task"]["UID"]] = said["task"]["Status"]
        return {}

    def deallocate(self, said: dict[str, Any]) -> dict[str, Any]:
        """Records that the place was taken back, since the job doesn't fit as a whole."""
        self._given.setdefault(self._queue, {}).pop(said["task"]["UID"], None)
        return {}


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"  # connections stay open
    wbufsize = -1  # send head and body together, or every answer waits 40 ms for the peer's acknowledgement
    server: _Server

    def do_POST(self) -> None:
        """Answers one request from Volcano."""
        action = self.server.actions.get(self.path)
        said = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        answer = json.dumps(action(said) if action else {}).encode()
        self.send_response(200 if action else 404)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, format: str, *args: Any) -> None:
        """Logs nothing: requests are frequent."""


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, port: int) -> None:
        super().__init__(("127.0.0.1", port), _Handler)
        gate = StrictFifoGate()
        self.actions = {
            "/close": gate.close,
            "/overused": gate.overused,
            "/allocate": gate.allocate,
            "/deallocate": gate.deallocate,
        }


def run(port: int) -> int:
    """Answers the scheduler in the same pod until told to stop."""
    server = _Server(port)
    for sign in (signal.SIGTERM, signal.SIGINT):
        signal.signal(sign, lambda *_: threading.Thread(target=server.shutdown).start())
    say(f"keeping the order of queues on 127.0.0.1:{port}")
    with server:
        server.serve_forever()
    return 0
