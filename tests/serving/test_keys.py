"""A model with keys answers nobody without one, and no longer those whose key was removed."""

import hashlib
from collections.abc import Callable
from pathlib import Path

import pytest
from asking import KEYS, ask, refused, write_keys

from trainyard_dev.serving.process import Server
from waiting import wait

BODY = {"instances": [[0.0] * 64]}
Start = Callable[..., Server]


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("POST", "/predict"),
        ("POST", "/v2/models/digits/infer"),
        ("POST", "/v2/models/digits/versions/1/infer"),
        ("GET", "/v2/models/digits"),
        ("GET", "/v2/models/digits/ready"),
        ("GET", "/v2"),
        ("GET", "/card"),
    ],
)
def test_nothing_of_the_model_without_a_key(shared: dict[str, Server], method: str, path: str) -> None:
    server = shared["locked"]
    body = BODY if method == "POST" else None
    digest = hashlib.sha256(KEYS[0].encode()).hexdigest()
    headers = [{}, {"key": "wrong"}, {"key": digest}, {"Authorization": KEYS[0]}, {"Authorization": "Bearer "},
               {"Authorization": f"Basic {KEYS[0]}"}]  # fmt: skip
    for one in headers:
        said = ask(server, method, path, body, **one)
        assert said.status == 401, one
        assert said.headers["www-authenticate"] == "Bearer"
        assert said.json["error"] == f"{path}: key required. send a key of this model as `Authorization: Bearer KEY`."
    if path == "/predict":
        assert [ask(server, method, path, body, key=key).status for key in KEYS] == [200, 200]


def test_health_and_the_page_need_none(shared: dict[str, Server]) -> None:
    server = shared["locked"]
    for path in ("/v2/health/live", "/v2/health/ready", "/", "/page.js", "/page.css"):
        assert ask(server, "GET", path).status == 200, path


def test_a_key_ends_with_its_line(launch: Start, tmp_path: Path) -> None:
    file = tmp_path / "keys.json"
    write_keys(file, *KEYS)
    server = launch("onnx", KEYS_FILE=str(file))
    write_keys(file, KEYS[1])
    wait(lambda: ask(server, "POST", "/predict", BODY, key=KEYS[0]).status == 401, "that the key is 401")
    assert ask(server, "POST", "/predict", BODY, key=KEYS[1]).status == 200
    file.write_text("[1]")
    wait(lambda: ask(server, "POST", "/predict", BODY, key=KEYS[1]).status == 401, "that the key is 401")
    assert "all keys are refused" in server.output()
    write_keys(file, KEYS[0])
    wait(lambda: ask(server, "POST", "/predict", BODY, key=KEYS[0]).status == 200, "that the key is 200")


@pytest.mark.parametrize("text", ["{", "{}", '["plain"]', "[1]"])
def test_a_list_that_is_none_starts_no_server(launch: Start, tmp_path: Path, text: str) -> None:
    file = tmp_path / "keys.json"
    file.write_text(text)
    words = "write a JSON list of SHA-256 digests of keys, each 64 hexadecimal digits"
    refused(launch, "onnx", words, KEYS_FILE=str(file))
