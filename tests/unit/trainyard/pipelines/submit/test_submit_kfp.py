"""Pipelines for a site's own KFP: a server that speaks the calls which kfp's client makes."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import yaml
from local_server import Answers, kubeconfig, serving
from maps_server import served

from trainyard import contract
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

    class Handler(Answers):
        def get(self) -> None:
            path = self.path.split("?")[0]
            if path == f"{API}/healthz":
                self.answer(200, {"multi_user": False})
            elif path == f"{API}/experiments":
                self.answer(200, {})
            elif path == f"{API}/runs/r1":
                now = state.states.pop(0) if len(state.states) > 1 else state.states[0]
                task = {"display_name": "train", "state": "FAILED", "error": {"code": 1, "message": "loss is NaN"}}
                details = {"task_details": [task]} if now == "FAILED" else {}
                self.answer(200, {"run_id": "r1", "state": now, "run_details": details})
            else:
                self.answer(404, {"error": f"no {path}"})

        def post(self) -> None:
            body = json.loads(self.body())
            state.asked.append((self.path, self.headers.get("Authorization"), body))
            if state.refuse:
                self.answer(state.refuse[0], {"error": "wrong", "message": state.refuse[1]})
            elif self.path == f"{API}/experiments":
                self.answer(200, {"experiment_id": "e1", "display_name": body["display_name"]})
            elif self.path.split("?")[0] == f"{API}/runs":
                self.answer(200, {"run_id": "r1", "experiment_id": "e1"})
            else:
                self.answer(404, {"error": f"no {self.path}"})

    with serving(Handler) as state.url:
        yield state


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
def submit(trainyard: Callable[..., Any], kfp_server: SimpleNamespace, tmp_path: Path) -> Callable[..., Any]:
    file = tmp_path / "doubling.py"
    file.write_text(SOURCE)

    def call(*words: str, endpoint: str = kfp_server.url) -> Any:
        return trainyard(
            "submit", str(file), "--backend", "kfp", *(["--endpoint", endpoint] if endpoint else []), *words
        )

    return call


def test_the_pipeline_goes_as_it_was_compiled(submit: Callable[..., Any], kfp_server: SimpleNamespace) -> None:
    ended = submit("--token", "secret", "--param", "n=21", "--experiment", "first", "--no-cache")
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


def test_a_failed_run_fails_with_its_step_s_words(submit: Callable[..., Any], kfp_server: SimpleNamespace) -> None:
    kfp_server.states = ["FAILED"]
    ended = submit("-p", "n=1")
    assert ended.code == 1
    assert "run r1 failed: step train: loss is NaN\nhint: see http://" in ended.err


@pytest.mark.parametrize(
    ("words", "refuse", "error"),
    [
        ((), (401, "who are you"), "KFP refused: who are you. pass a valid --token."),
        (
            ("--queue", "vision"),
            None,
            "KFP supports neither queues nor priority classes. remove --queue and --priority.",
        ),
        (("--dry-run",), None, "--dry-run and --logs are for the backend argo"),
        (("-p", "m=1"), None, "the pipeline has no input m; its inputs: n, note"),
    ],
)
def test_what_is_refused(
    submit: Callable[..., Any], kfp_server: SimpleNamespace, words: tuple[str, ...], refuse: Any, error: str
) -> None:
    kfp_server.refuse = refuse
    assert error in submit("-p", "n=1", *words).error()


def test_nobody_answers(submit: Callable[..., Any]) -> None:
    assert "http://127.0.0.1:1: KFP did not answer: " in submit("-p", "n=1", endpoint="http://127.0.0.1:1").error()
    assert "is not a URL" in submit("-p", "n=1", endpoint="kfp").error()


def test_without_an_endpoint_it_goes_to_the_platform_s_own_service_with_the_kubeconfig_s_token(
    submit: Callable[..., Any], kfp_server: SimpleNamespace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)
    with served() as api:
        monkeypatch.setenv("KUBECONFIG", str(kubeconfig(tmp_path / "config", api.host, "vision", token="mine")))
        published = api.data["trainyard-system/trainyard-contract"] = {}
        published["contract.yaml"] = yaml.safe_dump({**contract.render.defaults(), "kfpApi": {"url": kfp_server.url}})
        ended = submit("-p", "n=1", endpoint="")
        assert ended.code == 0, ended.err
        assert [token for _, token, _ in kfp_server.asked] == ["Bearer mine"] * 2
        assert kfp_server.asked[0][2]["namespace"] == "vision"
        published["contract.yaml"] = yaml.safe_dump(contract.render.defaults())
        said = submit("-p", "n=1", endpoint="").error()
        assert "the platform publishes no URL of a service for kfp.Client. pass --endpoint URL, set" in said
