"""Pipelines for a site's own KFP: a server that speaks the calls which kfp's client makes."""

from __future__ import annotations

import http.server
import json
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from trainyard.pipelines.submit import kfp_backend

API = "/apis/v2beta1"


@pytest.fixture
def kfp_server(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[SimpleNamespace]:
    """`states` are what successive polls of the run find; `asked` is what came in."""
    monkeypatch.setattr(kfp_backend, "POLL_INTERVAL_S", 0.01)
    monkeypatch.setattr("kfp.client.client.Client._LOCAL_KFP_CONTEXT", str(tmp_path / "context.json"))
    for name in ("KF_PIPELINES_ENDPOINT", "KFP_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    state = SimpleNamespace(asked=[], states=["PENDING", "RUNNING", "SUCCEEDED"], refuse=None, error=None, url="")

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            path = self.path.split("?")[0]
            if path == f"{API}/healthz":
                self.answer({"multi_user": False})
            elif path == f"{API}/experiments":
                self.answer({})
            elif path == f"{API}/runs/r1":
                now = state.states.pop(0) if len(state.states) > 1 else state.states[0]
                task = {"display_name": "train", "state": "FAILED", "error": {"code": 1, "message": "loss is NaN"}}
                details = {"task_details": [task]} if now == "FAILED" else {}
                self.answer({"run_id": "r1", "state": now, "run_details": details})
            else:
                self.answer({"error": f"no {path}"}, 404)

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            state.asked.append((self.path, self.headers.get("Authorization"), body))
            if state.refuse:
                self.answer({"error": "wrong", "message": state.refuse[1]}, state.refuse[0])
            elif self.path == f"{API}/experiments":
                self.answer({"experiment_id": "e1", "display_name": body["display_name"]})
            elif self.path.split("?")[0] == f"{API}/runs":
                self.answer({"run_id": "r1", "experiment_id": "e1"})
            else:
                self.answer({"error": f"no {self.path}"}, 404)

        def answer(self, body: dict[str, Any], code: int = 200) -> None:
            text = json.dumps(body).encode()
            self.send_response(code)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(text)))
            self.end_headers()
            self.wfile.write(text)

        def log_message(self, *_: object) -> None: ...

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        state.url = f"http://127.0.0.1:{server.server_port}"
        threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
        yield state
        server.shutdown()


SOURCE = """
from kfp import dsl

@dsl.component(base_image="python:3.11", install_kfp_package=False)
def double(n: int) -> int:
    return 2 * n

@dsl.pipeline(name="doubling")
def doubling(n: int, note: str = "") -> int:
    return double(n=n).output
"""


@pytest.fixture
def compiled(tmp_path: Path) -> Path:
    file = tmp_path / "doubling.py"
    file.write_text(SOURCE)
    return file


def test_the_pipeline_goes_as_it_was_compiled(
    trainyard: Callable[..., Any], kfp_server: SimpleNamespace, compiled: Path
) -> None:
    ended = trainyard(
        "submit", str(compiled), "--backend", "kfp", "--endpoint", kfp_server.url, "--token", "secret",
        "--param", "n=21", "--experiment", "first", "--no-cache",
    )  # fmt: skip
    assert ended.code == 0, ended.err
    assert [line for line in ended.err.splitlines() if "created" not in line] == [
        "run r1: pending",
        "run r1: running",
        "run r1: succeeded",
    ]
    (_, token, experiment), (_, _, run) = kfp_server.asked
    assert (token, experiment["display_name"]) == ("Bearer secret", "first")
    assert run["runtime_config"]["parameters"] == {"n": 21}
    sent = run["pipeline_spec"]
    assert sent.get("pipeline_spec", sent)["pipelineInfo"] == {"name": "doubling"}
    (task,) = sent.get("pipeline_spec", sent)["root"]["dag"]["tasks"].values()
    assert not task.get("cachingOptions")


def test_a_failed_run_fails_with_its_step_s_words(
    trainyard: Callable[..., Any], kfp_server: SimpleNamespace, compiled: Path
) -> None:
    kfp_server.states = ["FAILED"]
    ended = trainyard("submit", str(compiled), "--backend", "kfp", "--endpoint", kfp_server.url, "-p", "n=1")
    assert ended.code == 1
    assert "run r1 failed: step train: loss is NaN. see http://" in ended.err


@pytest.mark.parametrize(
    ("words", "refuse", "error"),
    [
        ((), (401, "who are you"), "KFP refused: who are you. give a valid --token."),
        (
            ("--queue", "vision"),
            None,
            "KFP knows neither queues nor priority classes. leave out --queue and --priority.",
        ),
        (("--dry-run",), None, "--dry-run and --logs are for the backend argo"),
        (("-p", "m=1"), None, "the pipeline has no input m; its inputs: n, note"),
    ],
)
def test_what_is_refused(
    trainyard: Callable[..., Any],
    kfp_server: SimpleNamespace,
    compiled: Path,
    words: tuple[str, ...],
    refuse: tuple[int, str] | None,
    error: str,
) -> None:
    kfp_server.refuse = refuse
    ended = trainyard("submit", str(compiled), "--backend", "kfp", "--endpoint", kfp_server.url, "-p", "n=1", *words)
    assert error in ended.error()


def test_nobody_answers(trainyard: Callable[..., Any], kfp_server: SimpleNamespace, compiled: Path) -> None:
    ended = trainyard("submit", str(compiled), "--backend", "kfp", "--endpoint", "http://127.0.0.1:1", "-p", "n=1")
    assert "http://127.0.0.1:1: KFP did not answer: " in ended.error()
    assert "needs --endpoint" in trainyard("submit", str(compiled), "--backend", "kfp", "-p", "n=1").error()
    assert (
        "is not a URL"
        in trainyard("submit", str(compiled), "--backend", "kfp", "--endpoint", "kfp", "-p", "n=1").error()
    )
