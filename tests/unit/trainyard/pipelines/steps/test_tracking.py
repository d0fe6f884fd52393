"""Numbers of a training step's job at the site's MLflow server, sent by the step."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from trainyard.pipelines.steps import cluster, component, results
from trainyard_dev.e2e.sites.tracking_server import Server

ENV = {
    "TRAINYARD_RUN": "mnist-1", "TRAINYARD_RUN_UID": "u1", "TRAINYARD_TEAM": "vision",
    "TRAINYARD_QUEUE": "vision", "TRAINYARD_STEP": '{"task": "train"}',
}  # fmt: skip
FILES = {"metrics.jsonl": '{"loss": 0.5}\n', "metrics.json": '{"accuracy": 0.9}'}


class _Metrics(dict):
    log_metric = dict.__setitem__


def trained(folder: Path, monkeypatch: pytest.MonkeyPatch, env: dict[str, str], **given: Any) -> _Metrics:
    """One run of the component on a cluster that succeeds at once; returns its kfp metrics."""

    def fetch(uri: str, into: Path, env: object) -> list[str]:
        for name, text in FILES.items():
            (into / name).write_text(text)
        return sorted(FILES)

    monkeypatch.setattr(cluster, "run", lambda request, env: None)
    monkeypatch.setattr(results, "fetch", fetch)
    kfp = _Metrics()
    command = ["python3", "train.py", "--out={out}", "--lr=0.1"]
    artifacts = {"model": SimpleNamespace(path=str(folder), metadata={}), "metrics": kfp}
    component.run("pytorch", {"command": command, "name": "mnist", "env": {}, **artifacts, **given}, {**ENV, **env})
    return kfp


def env_of(tracking: Server) -> dict[str, str]:
    return {"MLFLOW_TRACKING_URI": f"http://127.0.0.1:{tracking.server_address[1]}"}


@pytest.mark.parametrize("given", [{}, {"checkpoints": "saved"}])
def test_what_a_job_wrote_to_out_is_sent(
    tracking: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, given: dict[str, str]
) -> None:
    assert trained(tmp_path, monkeypatch, env_of(tracking), **given) == {"accuracy": 0.9}
    bodies = {call: body for call, body, _ in tracking.asked}
    assert bodies["experiments/create"] == {"name": "vision/mnist"}
    assert bodies["runs/create"]["run_name"].startswith("mnist-")
    logged = [body for call, body, _ in tracking.asked if call == "runs/log-batch"]
    assert {"key": "lr", "value": "0.1"} in logged[0]["params"]
    assert [one["key"] for body in logged[1:] for one in body["metrics"]] == ["loss", "accuracy"]
    assert bodies["runs/update"]["status"] == "FINISHED"


def test_what_the_jobs_own_pod_sends_is_not_sent_again(
    tracking: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    trained(tmp_path, monkeypatch, env_of(tracking), results="outcome")
    assert not tracking.asked


@pytest.mark.parametrize("env", [{}, {"MLFLOW_TRACKING_URI": "http://127.0.0.1:9"}])
def test_no_server_and_one_that_is_away_cost_a_step_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, env: dict[str, str]
) -> None:
    assert trained(tmp_path, monkeypatch, env) == {"accuracy": 0.9}
