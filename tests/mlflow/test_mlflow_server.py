"""Metrics in a real MLflow server, as its own REST API gives them back: what a training pod's second container sends.

The server is 87 packages that nothing else here needs (3.17.2: 182 MiB of wheels, over a minute to choose and install),
so it isn't in requirements.lock: TRAINYARD_MLFLOW names its program, of MLflow 3, such as bin/mlflow of an environment
into which `pip install 'mlflow>=3,<4'` has put it.
"""

import json
import os
import signal
import socket
import subprocess
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from trainyard_agent.runs import mlflow
from trainyard_agent.runs.run_metrics import Sender, sender

PROGRAM = os.environ.get("TRAINYARD_MLFLOW", "")
LEFT_OUT = "TRAINYARD_MLFLOW names no MLflow server: 182 MiB that nothing else needs"
pytestmark = pytest.mark.skipif(not PROGRAM, reason=LEFT_OUT)
START_S = 300


@pytest.fixture(scope="session")
def uri(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A server of the tests' own, with its state in a file."""
    folder = tmp_path_factory.mktemp("mlflow")
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        port = one.getsockname()[1]
    store = f"--backend-store-uri=sqlite:///{folder}/mlflow.db"
    argv = [
        PROGRAM,
        "server",
        store,
        f"--artifacts-destination={folder}",
        "--host=127.0.0.1",
        f"--port={port}",
        "--workers=1",
    ]
    with open(folder / "log", "w") as log:
        process = subprocess.Popen(argv, cwd=folder, stdout=log, stderr=subprocess.STDOUT, start_new_session=True)
    address, end = f"http://127.0.0.1:{port}", time.monotonic() + START_S
    try:
        while not _answers(address):
            assert process.poll() is None and time.monotonic() < end, (folder / "log").read_text()[-2000:]
            time.sleep(0.5)
        yield address
    finally:
        os.killpg(process.pid, signal.SIGTERM)
        process.wait(30)


def _answers(address: str) -> bool:
    try:
        with urllib.request.urlopen(f"{address}/health", timeout=5):
            return True
    except OSError:
        return False


def ask(uri: str, call: str, body: dict[str, Any]) -> Any:
    request = urllib.request.Request(f"{uri}/api/2.0/mlflow/{call}", json.dumps(body).encode(), method="POST")
    request.add_header("Content-Type", "application/json")
    with urllib.request.urlopen(request, timeout=10) as answer:
        return json.loads(answer.read())


def found(uri: str, experiment: str) -> list[dict[str, Any]]:
    """All runs of an experiment."""
    number = mlflow.Server(uri, {}).experiment(experiment)
    return list(ask(uri, "runs/search", {"experiment_ids": [number]}).get("runs") or [])


def job(uri: str, name: str, folder: Path, **params: str) -> Sender:
    env = {"MLFLOW_TRACKING_URI": uri, "MLFLOW_EXPERIMENT_NAME": f"vision/{name}", "TRAINYARD_JOB": f"{name}-x"}
    made = sender(env, params, folder)
    assert made
    return made


def test_a_job_becomes_a_finished_run_with_its_parameters_and_numbers(uri: str, tmp_path: Path) -> None:
    one = job(uri, "digits", tmp_path, lr="0.1", epochs="3")
    (tmp_path / "metrics.jsonl").write_text('{"step": 1, "loss": 0.5}\n{"step": 2, "loss": 0.25}\n{"step": 3, "lo')
    assert one.round(tmp_path)
    [run] = found(uri, "vision/digits")
    assert run["info"]["status"] == "RUNNING" and run["info"]["run_name"] == "digits-x"
    (tmp_path / "metrics.json").write_text(json.dumps({"accuracy": 0.9, "framework": "torch", "broken": float("nan")}))
    one.end(tmp_path)
    [run] = found(uri, "vision/digits")
    assert run["info"]["status"] == "FINISHED" and run["info"]["end_time"] >= run["info"]["start_time"]
    assert {one["key"]: one["value"] for one in run["data"]["params"]} == {"lr": "0.1", "epochs": "3"}
    assert {one["key"]: one["value"] for one in run["data"]["metrics"]} == {"accuracy": 0.9, "loss": 0.25}
    assert {one["key"]: one["value"] for one in run["data"]["tags"]}["trainyard.team"] == "vision"
    address = f"{uri}/api/2.0/mlflow/metrics/get-history?run_id={run['info']['run_id']}&metric_key=loss"
    with urllib.request.urlopen(address, timeout=10) as answer:
        history = json.loads(answer.read())["metrics"]
    assert [(one["step"], one["value"]) for one in history] == [(1, 0.5), (2, 0.25)]


def test_a_restart_goes_on_with_its_run(uri: str, tmp_path: Path) -> None:
    job(uri, "again", tmp_path).round(tmp_path)
    second = job(uri, "again", tmp_path)
    (tmp_path / "metrics.json").write_text('{"loss": 1}')
    second.end(tmp_path)
    [run] = found(uri, "vision/again")
    assert run["info"]["status"] == "FINISHED"


def test_a_command_without_metrics_counts_as_failed(uri: str, tmp_path: Path) -> None:
    job(uri, "broken", tmp_path).end(tmp_path)
    [run] = found(uri, "vision/broken")
    assert run["info"]["status"] == "FAILED"


def test_more_numbers_than_one_request_may_hold_and_names_it_refuses(uri: str, tmp_path: Path) -> None:
    many = {f"m{at}": at for at in range(2500)} | {"f1@5": 0.5}
    (tmp_path / "metrics.json").write_text(json.dumps(many))
    job(uri, "many", tmp_path, **{f"p{at}": "x" for at in range(150)}).end(tmp_path)
    [run] = found(uri, "vision/many")
    keys = {one["key"] for one in run["data"]["metrics"]}
    assert len(keys) == 2501 and "f1_5" in keys and len(run["data"]["params"]) == 150


def test_what_the_server_refuses_is_an_error_with_its_words(uri: str) -> None:
    with pytest.raises(mlflow.MlflowError, match=r"refuses: .*not found"):
        mlflow.Server(uri, {}).log("0" * 32, params={"a": "b"})
