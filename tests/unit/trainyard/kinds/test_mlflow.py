"""A job's variables for the site's MLflow server; none where there is no server."""

from typing import Any

import pytest
from sites import with_team

from trainyard.kinds import JobSpec, TeamConfig, manifest, registry
from trainyard.kinds.pods import UPLOAD
from trainyard.policy.lint.pods import pods

URI = "http://mlflow.tracking.svc:5000"


def containers(framework: str, uri: str, python: str = "", *, tracked: bool = True) -> list[dict[str, Any]]:
    site = with_team(mlflow={"trackingUri": uri})
    words = ("python", "train.py", "--lr", "0.1", "--name=$(X)")
    spec = JobSpec(
        "digits-x7k2p", words, framework=framework, team="vision", output="vision/jobs/d", code="c", code_sha256="d",
        python=python, tracked=tracked,
    )  # fmt: skip
    return [one for pod in pods(manifest(spec, TeamConfig.of(site, "vision"))) for one, _ in pod.containers()]


def environment(container: dict[str, Any]) -> dict[str, Any]:
    return {one["name"]: one.get("value", one.get("valueFrom")) for one in container["env"]}


@pytest.mark.parametrize("framework", registry.FRAMEWORKS)
def test_the_uploader_knows_server_experiment_parameters_and_log_in(framework: str) -> None:
    found = [one for one in containers(framework, URI) if one["name"] == UPLOAD]
    assert found
    for one in found:
        told = environment(one)
        assert told["MLFLOW_TRACKING_URI"] == URI and told["TRAINYARD_JOB"] == "digits-x7k2p"
        assert told["MLFLOW_EXPERIMENT_NAME"] == "vision/digits"
        token = told["MLFLOW_TRACKING_TOKEN"]["secretKeyRef"]
        assert token == {"name": "trainyard-mlflow", "key": "token", "optional": True}
        assert [word for word in one["args"] if word.startswith("--param")] == ["--param=lr=0.1", "--param=name=$$(X)"]


def test_code_that_uses_mlflow_itself_finds_the_server() -> None:
    main = next(one for one in containers("pytorch", URI) if one["name"] == "pytorch")
    assert environment(main)["MLFLOW_TRACKING_URI"] == URI


@pytest.mark.parametrize("framework", registry.FRAMEWORKS)
def test_without_a_server_nothing_is_told(framework: str) -> None:
    for one in containers(framework, ""):
        assert not [name for name in environment(one) if name.startswith("MLFLOW")]
        assert not [word for word in one.get("args") or [] if "--param" in word]


@pytest.mark.parametrize("framework", registry.FRAMEWORKS)
def test_the_uploader_reads_the_exit_code_where_a_parent_leaves_it(framework: str) -> None:
    told = [one for one in containers(framework, URI, "python3") if "TRAINYARD_EXIT" in environment(one)]
    assert {environment(one)["TRAINYARD_EXIT"] for one in told} == {"/trainyard/.trainyard-exit"}
    assert len([one for one in told if one["name"] == UPLOAD]) == len([one for one in told if one["name"] != UPLOAD])
    for uri, python in (("", "python3"), (URI, "")):
        assert not [one for one in containers(framework, uri, python) if "TRAINYARD_EXIT" in environment(one)]


@pytest.mark.parametrize("framework", registry.FRAMEWORKS)
def test_a_job_whose_step_sends_its_metrics_has_no_second_sender(framework: str) -> None:
    found = containers(framework, URI, "python3", tracked=False)
    for one in found:
        assert "TRAINYARD_EXIT" not in environment(one)
        assert (one["name"] == UPLOAD) <= ("MLFLOW_TRACKING_URI" not in environment(one))
    assert any("MLFLOW_TRACKING_URI" in environment(one) for one in found)
