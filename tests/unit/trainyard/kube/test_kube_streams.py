"""A program's streams over a WebSocket, with a server that speaks the API server's protocol on a real socket."""

import hashlib
import io
import json
import os
import socket
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any
from urllib.parse import parse_qs, urlparse

import pytest
from kubernetes.client import Configuration
from websocket_node import Node, listening

from trainyard.kube import Kube, KubeError
from trainyard.kube.streams import PROTOCOL


class _Pod(Node):
    """Answers one exec: `cat` gives back what comes, `exit N` fails, `hang` ends without a word."""

    def handle(self) -> None:
        line, headers = self.asked()
        self.server.seen.append(SimpleNamespace(line=line, headers=headers))
        words = parse_qs(urlparse(line.split()[1]).query)["command"]
        if words[0] == "forbidden":
            said = 'pods "x" is forbidden: User "eve" cannot get resource "pods/exec"'
            return self.refuse(json.dumps({"message": said}).encode())
        self.accept(headers, PROTOCOL)
        if words[0] == "hang":
            return self.send(2, b"out of memory")
        if words[0] == "exit":
            self.send(2, b"no such model\n")
            causes = [{"reason": "ExitCode", "message": words[1]}]
            return self.end({"status": "Failure", "reason": "NonZeroExitCode", "details": {"causes": causes}})
        if words[0] == "absent":
            return self.end({"status": "Failure", "message": 'exec: "absent": not found in $PATH', "code": 500})
        while (data := self.receive()) != b"\xff\x00":
            assert data and data[0] == 0
            self.send(1, data[1:])
        return self.end({"status": "Success"})

    def end(self, status: dict[str, object]) -> None:
        self.send(3, json.dumps(status).encode())
        self.close()


@pytest.fixture
def pods() -> Iterator[Any]:
    with listening(_Pod) as server:
        yield server


@pytest.fixture
def kube(pods: Any) -> Kube:
    configuration = Configuration()
    configuration.host = f"http://127.0.0.1:{pods.server_address[1]}"
    configuration.api_key["authorization"] = "Bearer secret"
    return Kube(configuration, "vision", "ada", ["vision-members", "staff"])


def test_bytes_come_back_as_they_went(kube: Kube, pods: Any) -> None:
    """Eight megabytes of noise through a program that writes while it reads: nothing waits, nothing changes."""
    noise = os.urandom(8 * 1024 * 1024 + 7)
    back = io.BytesIO()
    done = kube.exec("box", ["cat", "-"], container="main", stdin=io.BytesIO(noise), stdout=back)
    assert done.code == 0
    assert hashlib.sha256(back.getvalue()).digest() == hashlib.sha256(noise).digest()
    [seen] = pods.seen
    assert "/api/v1/namespaces/vision/pods/box/exec?" in seen.line
    assert "accept" not in dict(seen.headers)  # a node of 1.36 answers 406 to application/json
    streams = {name: ["true"] for name in ("stdin", "stdout", "stderr")}
    query = parse_qs(urlparse(seen.line.split()[1]).query)
    assert query == {"command": ["cat", "-"], "container": ["main"], **streams}
    groups = [value for name, value in seen.headers if name == "impersonate-group"]
    assert groups == ["vision-members", "staff"]
    assert ("authorization", "Bearer secret") in seen.headers
    assert ("impersonate-user", "ada") in seen.headers


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
