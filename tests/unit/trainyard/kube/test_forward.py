"""A pod's port on this machine, against a server that speaks the API server's protocol on a real socket."""

from __future__ import annotations

import base64
import hashlib
import os
import socket
import socketserver
import struct
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from kubernetes.client import Configuration
from websocket import ABNF

from trainyard.kube import Kube, KubeError
from trainyard.kube.forward import PROTOCOL, Forward

GUID = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"  # RFC 6455


class _Node(socketserver.StreamRequestHandler):
    """Gives back what comes to port 6006; nothing listens on 7; 403 for a pod `closed`."""

    def handle(self) -> None:
        line, headers = self.rfile.readline().decode(), {}
        while (header := self.rfile.readline().decode().strip()) != "":
            name, _, value = header.partition(": ")
            headers[name.lower()] = value
        self.server.seen.append((line, headers))
        if "/pods/closed/" in line:
            body = b'{"message": "pods \\"closed\\" is forbidden"}'
            self.wfile.write(b"HTTP/1.1 403 Forbidden\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body))
            return
        accept = base64.b64encode(hashlib.sha1((headers["sec-websocket-key"] + GUID).encode()).digest()).decode()
        self.wfile.write(
            (
                "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
                f"Sec-WebSocket-Accept: {accept}\r\nSec-WebSocket-Protocol: {PROTOCOL}\r\n\r\n"
            ).encode()
        )
        port = int(line.split("ports=")[1].split()[0])
        self.send(0, struct.pack("<H", port))
        self.send(1, struct.pack("<H", port))
        if port == 7:
            self.send(1, b"connection refused")
            self.wfile.write(b"\x88\x02\x03\xe8")
            return
        while (data := self.receive()) is not None:
            if data:
                assert data[0] == 0
                self.send(0, data[1:])

    def receive(self) -> bytes | None:
        """A message; b"" for a ping, None at the end."""
        head = self.rfile.read(2)
        if len(head) < 2 or head[0] & 0x0F == ABNF.OPCODE_CLOSE:
            return None
        length = head[1] & 0x7F
        if length == 126:
            length = struct.unpack("!H", self.rfile.read(2))[0]
        mask, data = self.rfile.read(4), self.rfile.read(length)
        key = (mask * (length // 4 + 1))[:length]
        plain = (int.from_bytes(data, "big") ^ int.from_bytes(key, "big")).to_bytes(length, "big")
        return b"" if head[0] & 0x0F == ABNF.OPCODE_PING else plain

    def send(self, channel: int, data: bytes) -> None:
        size = len(data) + 1
        head = bytes([0x82, size]) if size < 126 else b"\x82\x7e" + struct.pack("!H", size)
        self.wfile.write(head + bytes([channel]) + data)


Open = Callable[..., tuple[Forward, list[str]]]


@pytest.fixture
def node() -> Iterator[Any]:
    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), _Node) as server:
        server.daemon_threads, server.seen = True, []  # type: ignore[attr-defined]
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server
        server.shutdown()


@pytest.fixture
def forward(node: Any) -> Iterator[Open]:
    configuration = Configuration()
    configuration.host = f"http://127.0.0.1:{node.server_address[1]}"
    kube, running = Kube(configuration, "vision", "ada"), []

    def begin(pod: str = "board", pod_port: int = 6006, port: int = 0) -> tuple[Forward, list[str]]:
        said: list[str] = []
        made = Forward(kube, pod, pod_port, port, said.append)
        threading.Thread(target=made.serve_forever, daemon=True).start()
        running.append(made)
        return made, said

    yield begin
    for one in running:
        one.shutdown()
        one.server_close()


def through(port: int, data: bytes) -> bytes:
    """What comes back, as much as was sent; less where the other side ends it."""
    back = b""
    with socket.create_connection(("127.0.0.1", port), timeout=10) as way:
        sender = threading.Thread(target=lambda: way.sendall(data), daemon=True)
        sender.start()
        while len(back) < len(data) and (piece := way.recv(65536)):
            back += piece
        sender.join(10)
    return back


def test_bytes_come_back_as_they_went_on_connections_side_by_side(forward: Open, node: Any) -> None:
    made, said = forward()
    noise = [os.urandom(1_000_003), os.urandom(70_000), b"x"]
    found: list[bytes] = [b""] * len(noise)

    def one(at: int) -> None:
        found[at] = through(made.port, noise[at])

    threads = [threading.Thread(target=one, args=(at,)) for at in range(len(noise))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert [hashlib.sha256(data).digest() for data in found] == [hashlib.sha256(data).digest() for data in noise]
    assert not said and len(node.seen) == 3
    line, headers = node.seen[0]
    assert "/api/v1/namespaces/vision/pods/board/portforward?ports=6006 " in line
    assert headers["impersonate-user"] == "ada" and "accept" not in headers


def test_it_listens_on_this_machine_alone(forward: Open) -> None:
    assert forward()[0].server_address[0] == "127.0.0.1"


@pytest.mark.parametrize(
    ("pod", "port", "words"),
    [
        ("closed", 6006, "the pod's port can't be reached: pods \"closed\" is forbidden"),
        ("board", 7, "connection refused"),
    ],
)
def test_what_breaks_a_connection_is_said_once(forward: Open, pod: str, port: int, words: str) -> None:
    made, said = forward(pod, port)
    assert through(made.port, b"GET /") == b"" and through(made.port, b"GET /") == b""
    assert said == [words]


def test_a_port_that_is_taken_is_named(forward: Open) -> None:
    made, _ = forward()
    with pytest.raises(KubeError, match=rf"port {made.port} of this machine can't be taken.*--port"):
        forward(port=made.port)
