"""The gate for StrictFIFO: while a queue's first job can't start, none behind it does. Volcano's extender asks here.

Volcano takes the jobs of a queue in turn, by priority and then by age, and goes on to the next when one doesn't fit.
Before each it asks whether the queue has had enough. It has when the job before got no place: then all the others wait
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

PIPELINED = 4  # Volcano's number for a pod that is promised what another still holds


class StrictFifoGate:
    """What happened in the scheduler's present round, from its questions."""

    def __init__(self) -> None:
        self._queue = ""  # whose job has its turn
        self._given: dict[str, dict[str, int]] = {}  # by queue: pods that the last job holds, with their state

    def close(self, _: dict[str, Any]) -> dict[str, Any]:
        """The round is over."""
        self._given.clear()
        return {}

    def overused(self, said: dict[str, Any]) -> dict[str, Any]:
        """May the next job of this queue have its turn? Not when the one before got nothing, or only a promise."""
        self._queue = said["queue"]["UID"]
        given = self._given.get(self._queue)
        if given is not None and (not given or PIPELINED in given.values()):
            return {"overused": True}
        self._given[self._queue] = {}
        return {"overused": False}

    def allocate(self, said: dict[str, Any]) -> dict[str, Any]:
        """A pod of the job that has its turn was given a place."""
        self._given.setdefault(self._queue, {})[said["task"]["UID"]] = said["task"]["Status"]
        return {}

    def deallocate(self, said: dict[str, Any]) -> dict[str, Any]:
        """It was taken back, since the job doesn't fit as a whole."""
        self._given.setdefault(self._queue, {}).pop(said["task"]["UID"], None)
        return {}


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"  # connections stay open
    wbufsize = -1  # head and body leave together, or every answer waits 40 ms for the other side's acknowledgement
    server: _Server

    def do_POST(self) -> None:
        """One question of Volcano."""
        action = self.server.actions.get(self.path)
        said = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        answer = json.dumps(action(said) if action else {}).encode()
        self.send_response(200 if action else 404)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, format: str, *args: Any) -> None:
        """Questions are many and not worth a line."""


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
    """Answers the scheduler beside it until it is told to end."""
    server = _Server(port)
    for sign in (signal.SIGTERM, signal.SIGINT):
        signal.signal(sign, lambda *_: threading.Thread(target=server.shutdown).start())
    say(f"keeping the order of queues on 127.0.0.1:{port}")
    with server:
        server.serve_forever()
    return 0
