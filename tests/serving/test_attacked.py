"""A server attacked: behind keys by those who have its address alone, and by those whom it answers."""

import json
import socket
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from asking import HEADER, ask, write_keys

from trainyard_dev.serving.process import Server

MODEL = "/v2/models/digits"
BODY = {"instances": [[0.0] * 64]}
Start = Callable[..., Server]


def spoken(server: Server, text: bytes, seconds: float, *, drip: bytes = b"") -> tuple[bytes, float]:
    """What the server says to a connection that sends this, and after how long it closes it."""
    began, said = time.monotonic(), b""
    with socket.create_connection(("127.0.0.1", server.port), timeout=1) as line:
        line.sendall(text)
        while time.monotonic() - began < seconds:
            try:
                if drip:
                    line.sendall(drip)
                part = line.recv(65536)
            except TimeoutError:
                continue
            except OSError:
                break
            if not part:
                break
            said += part
    return said, time.monotonic() - began


@pytest.mark.parametrize(
    ("text", "drip"),
    [(b"", b""), (b"GET / HTTP/1.1\r\nHost: a\r\n", b""), (b"GET / HTTP/1.1\r\nHost: a\r\nX-", b"a")],
    ids=["nothing", "half", "a letter at a time"],
)
def test_a_connection_that_asks_nothing_is_closed(launch: Start, tmp_path: Path, text: bytes, drip: bytes) -> None:
    write_keys(tmp_path / "keys.json", "key")
    server = launch("onnx", KEYS_FILE=str(tmp_path / "keys.json"), HEAD_S="3")
    assert spoken(server, text, 20, drip=drip)[1] < 10


def test_one_that_goes_on_after_its_first_request_is_closed_too(launch: Start) -> None:
    server = launch("onnx", HEAD_S="3")
    first = b"GET /v2/health/live HTTP/1.1\r\nHost: a\r\n\r\nGET / HTTP/1.1\r\nX-"
    said, seconds = spoken(server, first, 20, drip=b"a")
    assert b"200 OK" in said and seconds < 10


def test_whoever_has_no_key_is_not_listened_to(shared: dict[str, Server]) -> None:
    head = b"POST /predict HTTP/1.1\r\nHost: a\r\nContent-Length: 9000000\r\n\r\n"
    said, seconds = spoken(shared["locked"], head, 20, drip=b"a" * 1000)
    assert b" 401 " in said and seconds < 5


def test_bodies_that_wait_are_bounded_and_others_are_told_to_come_back(launch: Start) -> None:
    server = launch("onnx", MAX_BODY_MB="2", MAX_HELD_MB="4", BODY_S="4")
    head = b"POST /predict HTTP/1.1\r\nHost: a\r\nContent-Length: 1900000\r\n\r\n" + b"[" * 1_800_000
    lines = []
    try:
        for _ in range(3):
            lines.append(socket.create_connection(("127.0.0.1", server.port), timeout=10))
            lines[-1].sendall(head)
            time.sleep(0.3)
        assert b" 503 " in lines[-1].recv(65536)
        assert ask(server, "POST", "/predict", BODY).status == 200
        lines[0].settimeout(30)
        assert b" 408 " in lines[0].recv(65536)  # who doesn't go on holds it no longer
    finally:
        for line in lines:
            line.close()
    assert ask(server, "POST", "/predict", BODY).status == 200


IMAGE = {"name": "image", "datatype": "FP32", "shape": [1, 64], "data": [0.0] * 64}
LONG = "a" * 300_000


@pytest.mark.parametrize(
    "asked",
    [
        {"inputs": [{"name": "\u0001" * 300_000}]},
        {"inputs": [{**IMAGE, "shape": [LONG]}]},
        {"inputs": [{**IMAGE, "datatype": LONG}]},
        {"inputs": [{**IMAGE, "parameters": LONG}]},
        {"inputs": [IMAGE], "outputs": [{"name": LONG}]},
        {"inputs": [IMAGE], "outputs": LONG},
        {"inputs": [IMAGE], "id": [LONG]},
    ],
    ids=["name", "shape", "datatype", "parameters", "output", "outputs", "id"],
)
def test_an_error_is_not_longer_than_what_was_asked(shared: dict[str, Server], asked: object) -> None:
    said = ask(shared["onnx"], "POST", f"{MODEL}/infer", asked)
    assert said.status == 400 and len(said.body) < 2000, said.body[:300]


def test_deep_and_odd_bodies_are_refused_and_the_server_goes_on(shared: dict[str, Server]) -> None:
    server = shared["onnx"]
    deep = b'{"instances": ' + b"[" * 900 + b"]" * 900 + b"}"
    for body in (deep, b"[" * 100_000, b'{"instances": [[1e999]]}', b'{"instances": {"a": 1}}', b"\xff" * 1000):
        assert ask(server, "POST", "/predict", body).status == 400
    for length in ("9" * 5000, "-1", "١"):
        said = ask(server, "POST", f"{MODEL}/infer", b"{}", **{HEADER: length.encode("utf-8").decode("latin-1")})
        assert said.status in (400, 431), said.status
    assert ask(server, "POST", "/predict", BODY).status == 200


def test_nobody_gets_another_one_s_answer(shared: dict[str, Server]) -> None:
    """Many at once, each with rows of their own, and some that fail."""

    def asked(n: int) -> bool:
        rows = [[float(n)] * 64] * (1 + n % 3)
        if n % 7 == 0:
            return ask(shared["onnx"], "POST", "/predict", {"instances": [[1.0]]}).status == 400
        found = ask(shared["onnx"], "POST", "/predict", {"instances": rows}).json["predictions"]
        alone = ask(shared["onnx"], "POST", "/predict", {"instances": rows[:1]}).json["predictions"]
        close = all(abs(a - b) < 1e-2 * (1 + abs(b)) for one in found for a, b in zip(one, alone[0], strict=True))
        return len(found) == len(rows) and close

    with ThreadPoolExecutor(16) as pool:
        assert all(pool.map(asked, range(120)))


@pytest.mark.parametrize(
    "path",
    [
        "//predict", "/predict/", "/./predict", "/page.js/../predict", "/v2/health/live/../../../predict", "/%70redict",
        "/card?x=/page.js", f"{MODEL}/../digits", "/metrics",
    ],
)  # fmt: skip
def test_no_other_way_of_writing_a_path_goes_past_the_keys(shared: dict[str, Server], path: str) -> None:
    for method in ("GET", "POST", "HEAD", "PUT", "OPTIONS"):
        said = ask(shared["locked"], method, path, json.dumps(BODY).encode() if method == "POST" else None)
        assert said.status in (401, 404, 405), (method, said.status)
