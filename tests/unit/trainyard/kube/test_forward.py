"""A pod's port on this machine, with a server that speaks the API server's protocol on a real socket."""

import hashlib
import os
import socket
import struct
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from kubernetes.client import Configuration
from websocket_node import Node, listening

from trainyard.kube import Kube, KubeError
from trainyard.kube.forward import PROTOCOL, Forward


class _Pod(Node):
    """Gives back what comes to port 6006; nothing listens on 7; 403 for a pod `closed`."""

    def handle(self) -> None:
        line, headers = self.asked()
        self.server.seen.append((line, dict(headers)))
        if "/pods/closed/" in line:
            return self.refuse(b'{"message": "pods \\"closed\\" is forbidden"}')
        self.accept(headers, PROTOCOL)
        port = int(line.split("ports=")[1].split()[0])
        self.send(0, struct.pack("<H", port))
        self.send(1, struct.pack("<H", port))
        if port == 7:
            self.send(1, b"connection refused")
            return self.close()
        while (data := self.receive()) is not None:
            if data:
                assert data[0] == 0
                self.send(0, data[1:])
        return None


Open = Callable[..., tuple[Forward, list[str]]]


@pytest.fixture
def node() -> Iterator[Any]:
    with listening(_Pod) as server:
        yield server


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
    """Sends data and returns as much as comes back; less where the other side ends the connection."""
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
    with pytest.raises(KubeError, match=rf"port {made.port} on this machine can't be used.*--port"):
        forward(port=made.port)
