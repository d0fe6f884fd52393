"""Sends requests to a server for some seconds over persistent connections, one after another on each.

Prints the measurements. Runs in the server's environment, as a separate process. Answers other than 200 are counted,
without their latency.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import time
from collections import Counter
from pathlib import Path


class Client(asyncio.Protocol):
    """A connection that writes the request, reads the answer by its length, and writes the next."""

    def __init__(self, request: bytes, end: float) -> None:
        self.request, self.end = request, end
        self.latencies: list[float] = []
        self.statuses: Counter[int] = Counter()
        self.done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._buffer = bytearray()
        self._wanted = -1

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport
        self._send()

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        if self._wanted < 0:
            end = self._buffer.find(b"\r\n\r\n")
            if end < 0:
                return
            head = bytes(self._buffer[:end]).lower()
            self._status = int(head.split(b" ", 2)[1])
            length = head.partition(b"content-length:")[2].partition(b"\r\n")[0]
            self._wanted = end + 4 + int(length)
        if len(self._buffer) < self._wanted:
            return
        now = time.perf_counter()
        self.statuses[self._status] += 1
        if self._status == 200:
            self.latencies.append(now - self._began)
        self._buffer.clear()
        self._wanted = -1
        if now < self.end:
            self._send()
        else:
            self.transport.close()

    def connection_lost(self, error: Exception | None) -> None:
        if self._wanted >= 0 or time.perf_counter() < self.end:
            self.statuses[0] += 1  # the server closed the connection during a request
        if not self.done.done():
            self.done.set_result(None)

    def _send(self) -> None:
        self._began = time.perf_counter()
        self.transport.write(self.request)


async def ask(port: int, request: bytes, connections: int, seconds: float) -> dict[str, object]:
    """Measures requests, seconds, failures by status, and latencies in ms."""
    loop, began = asyncio.get_running_loop(), time.perf_counter()
    clients = [Client(request, began + seconds) for _ in range(connections)]
    for one in clients:
        await loop.create_connection(lambda one=one: one, "127.0.0.1", port)  # type: ignore[misc]
    await asyncio.wait_for(asyncio.gather(*(one.done for one in clients)), seconds + 60)
    took = time.perf_counter() - began
    latencies = sorted(value for one in clients for value in one.latencies)
    statuses = sum((one.statuses for one in clients), Counter[int]())
    shares = {share: (latencies or [0.0])[len(latencies) * share // 100] for share in (50, 90, 99)}
    return {
        "answered": statuses[200],
        "failed": {str(status): count for status, count in statuses.items() if status != 200},
        "seconds": took,
        "latency_ms": {str(share): round(1000 * value, 3) for share, value in shares.items()},
    }


def request(path: str, body: bytes, headers: dict[str, str]) -> bytes:
    """Returns the bytes of one request."""
    said = {"Host": "localhost", "Content-Type": "application/json", "Content-Length": str(len(body))} | headers
    lines = "".join(f"{name}: {value}\r\n" for name, value in said.items())
    return f"POST {path} HTTP/1.1\r\n{lines}\r\n".encode() + body


def main() -> None:
    """Reads its arguments, prints one JSON object."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("port", type=int)
    parser.add_argument("path")
    parser.add_argument("body", type=Path)
    parser.add_argument("--header", action="append", default=[], help="NAME=VALUE")
    parser.add_argument("--connections", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=5)
    said = parser.parse_args()
    blob = request(said.path, said.body.read_bytes(), dict(one.split("=", 1) for one in said.header))
    print(json.dumps(asyncio.run(ask(said.port, blob, said.connections, said.seconds))))


if __name__ == "__main__":
    main()
