"""A program's streams over a WebSocket, against a server that speaks the API server's protocol on a real socket."""

from __future__ import annotations

import base64
import hashlib
import io
import json
import os
import socket
import socketserver
import struct
import threading
from collections.abc import Iterator
from types import SimpleNamespace
from urllib.parse import parse_qs, urlparse

import pytest
from kubernetes.client import Configuration

from trainyard.kube import Kube, KubeError
from trainyard.kube.streams import PROTOCOL

GUID = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"  # RFC 6455


class _Pod(socketserver.StreamRequestHandler):
    """Answers one exec: `cat` gives back what comes, `exit N` fails, `hang` ends without a word."""

    def handle(self) -> None:
        line = self.rfile.readline().decode()
        headers: list[tuple[str, str]] = []
        while (header := self.rfile.readline().decode().strip()) != "":
            name, _, value = header.partition(": ")
            headers.append((name.lower(), value))
        self.server.seen = SimpleNamespace(line=line, headers=headers)
        query = parse_qs(urlparse(line.split()[1]).query)
        words = query["command"]
        if words[0] == "forbidden":
            body = json.dumps({"message": 'pods "x" is forbidden: User "eve" cannot get resource "pods/exec"'}).encode()
            self.wfile.write(b"HTTP/1.1 403 Forbidden\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body))
            return
        accept = base64.b64encode(hashlib.sha1((dict(headers)["sec-websocket-key"] + GUID).encode()).digest()).decode()
        self.wfile.write(
            (
                "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
                f"Sec-WebSocket-Accept: {accept}\r\nSec-WebSocket-Protocol: {PROTOCOL}\r\n\r\n"
            ).encode()
        )
        if words[0] == "hang":
            self.send(2, b"out of memory")
            return
        if words[0] == "exit":
            self.send(2, b"no such model\n")
            causes = [{"reason": "ExitCode", "message": words[1]}]
            self.end({"status": "Failure", "reason": "NonZeroExitCode", "details": {"causes": causes}})
            return
        if words[0] == "absent":
            self.end({"status": "Failure", "message": 'exec: "absent": not found in $PATH', "code": 500})
            return
        self.cat()
        self.end({"status": "Success"})

    def cat(self) -> None:
        while True:
            data = self.receive()
            if data == b"\xff\x00":
                return
            assert data[0] == 0
            self.send(1, data[1:])

    def receive(self) -> bytes:
        first, second = self.rfile.read(2)
        assert first & 0x8F in (0x82, 0x89)
        assert second & 0x80, "clients mask what they send"
        length = second & 0x7F
        if length == 126:
            length = struct.unpack("!H", self.rfile.read(2))[0]
        elif length == 127:
            length = struct.unpack("!Q", self.rfile.read(8))[0]
        mask, data = self.rfile.read(4), self.rfile.read(length)
        key = (mask * (length // 4 + 1))[:length]
        return (int.from_bytes(data, "big") ^ int.from_bytes(key, "big")).to_bytes(length, "big")

    def send(self, channel: int, data: bytes) -> None:
        size = len(data) + 1
        head = bytes([0x82, size]) if size < 126 else b"\x82\x7e" + struct.pack("!H", size)
        self.wfile.write(head + bytes([channel]) + data)

    def end(self, status: dict[str, object]) -> None:
        self.send(3, json.dumps(status).encode())
        self.wfile.write(b"\x88\x02\x03\xe8")


@pytest.fixture
def pods() -> Iterator[socketserver.ThreadingTCPServer]:
    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), _Pod) as server:
        server.daemon_threads = True
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server
        server.shutdown()


@pytest.fixture
def kube(pods: socketserver.ThreadingTCPServer) -> Kube:
    configuration = Configuration()
    configuration.host = f"http://127.0.0.1:{pods.server_address[1]}"
    configuration.api_key["authorization"] = "Bearer secret"
    return Kube(configuration, "vision", "ada", ["vision-members", "staff"])


def test_bytes_come_back_as_they_went(kube: Kube, pods: socketserver.ThreadingTCPServer) -> None:
    """Eight megabytes of noise through a program that writes while it reads: nothing waits, nothing changes."""
    noise = os.urandom(8 * 1024 * 1024 + 7)
    back = io.BytesIO()
    done = kube.exec("box", ["cat", "-"], container="main", stdin=io.BytesIO(noise), stdout=back)
    assert done.code == 0
    assert hashlib.sha256(back.getvalue()).digest() == hashlib.sha256(noise).digest()
    assert "/api/v1/namespaces/vision/pods/box/exec?" in pods.seen.line
    assert "accept" not in dict(pods.seen.headers)  # a node of 1.36 answers 406 to application/json
    assert parse_qs(urlparse(pods.seen.line.split()[1]).query) == {
        "command": ["cat", "-"],
        "container": ["main"],
        "stdin": ["true"],
        "stdout": ["true"],
        "stderr": ["true"],
    }
    groups = [value for name, value in pods.seen.headers if name == "impersonate-group"]
    assert groups == ["vision-members", "staff"]
    assert ("authorization", "Bearer secret") in pods.seen.headers
    assert ("impersonate-user", "ada") in pods.seen.headers


def test_output_without_a_file(kube: Kube) -> None:
    assert kube.exec("box", ["cat"], stdin=io.BytesIO(b"\x00\xff\n")).stdout == b"\x00\xff\n"


def test_a_program_that_fails_is_an_answer(kube: Kube) -> None:
    done = kube.exec("box", ["exit", "3"])
    assert (done.code, done.stderr) == (3, "no such model\n")


@pytest.mark.parametrize(
    ("command", "status", "words"),
    [
        ("absent", 500, "pod vision/box: exec: "),
        ("forbidden", 403, 'User "eve" cannot get resource "pods/exec"'),
        ("hang", 0, "the connection to the pod broke: out of memory"),
    ],
)
def test_what_stops_a_program_from_running(kube: Kube, command: str, status: int, words: str) -> None:
    with pytest.raises(KubeError) as caught:
        kube.exec("box", [command])
    assert caught.value.status == status
    assert words in str(caught.value)


def test_nobody_there() -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        configuration = Configuration()
        configuration.host = f"http://127.0.0.1:{unused.getsockname()[1]}"
        with pytest.raises(KubeError, match="no connection to the pod"):
            Kube(configuration).exec("box", ["cat"])
