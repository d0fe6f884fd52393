"""Metrics on their way to MLflow: data sent by the documented calls, and that an outage does not affect a job."""

from pathlib import Path
from typing import Any

import pytest

from trainyard_agent.runs import run_metrics
from trainyard_agent.runs.run_metrics import sender


def job(tracking: Any, folder: Path, **env: str) -> Any:
    uri = f"http://127.0.0.1:{tracking.server_address[1]}/"
    found = sender({"MLFLOW_TRACKING_URI": uri, "TRAINYARD_JOB": "digits-x", **env}, {"lr": "0.1", "seed": "1"}, folder)
    assert found
    return found


def test_calls_are_those_of_the_documentation(tracking: Any, tmp_path: Path) -> None:
    (tmp_path / "metrics.jsonl").write_text('{"loss": 0.5}\n{"loss": 0.25}\nhalf')
    (tmp_path / "metrics.json").write_text('{"accuracy": 0.9}')
    one = job(tracking, tmp_path, MLFLOW_EXPERIMENT_NAME="vision/digits")
    assert one.round(tmp_path) and one.round(tmp_path)  # nothing is sent twice
    one.end(tmp_path)
    assert [call for call, _, _ in tracking.asked] == [
        "experiments/get-by-name", "experiments/create", "runs/search", "runs/create", "runs/log-batch",
        "runs/log-batch", "runs/log-batch", "runs/update",
    ]  # fmt: skip
    bodies = [body for _, body, _ in tracking.asked]
    assert bodies[1] == {"name": "vision/digits"} and bodies[3]["experiment_id"] == "vision/digits"
    assert {"key": "trainyard.team", "value": "vision"} in bodies[3]["tags"]
    assert bodies[4]["params"] == [{"key": "lr", "value": "0.1"}, {"key": "seed", "value": "1"}]
    assert [(one["key"], one["value"], one["step"]) for one in bodies[5]["metrics"]] == [
        ("loss", 0.5, 0),
        ("loss", 0.25, 1),
    ]
    assert bodies[-1]["status"] == "FINISHED"


def metrics_of(tracking: Any) -> list[tuple[str, float, int]]:
    return [(one["key"], one["value"], one["step"]) for _, body, _ in tracking.asked for one in body.get("metrics", ())]


def test_a_parameter_that_is_refused_for_ever_keeps_no_number_back(
    tracking: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    tracking.refused = {"lr"}
    (tmp_path / "metrics.jsonl").write_text('{"loss": 0.5}\n')
    one = job(tracking, tmp_path)
    assert one.round(tmp_path) and one.round(tmp_path)
    assert metrics_of(tracking) == [("loss", 0.5, 0)]
    params = [body["params"] for _, body, _ in tracking.asked if "params" in body]
    assert [[one["key"] for one in some] for some in params] == [["lr", "seed"], ["lr"], ["seed"]]
    assert capsys.readouterr().out.count("skipped a parameter: ") == 1
    assert sum(call == "runs/create" for call, _, _ in tracking.asked) == 1


def test_a_sender_that_restarts_goes_on_behind_the_last_line(tracking: Any, tmp_path: Path) -> None:
    file = tmp_path / "metrics.jsonl"
    file.write_text('{"loss": 0.5}\n')
    job(tracking, tmp_path).round(tmp_path)
    file.write_text('{"loss": 0.5}\n{"loss": 0.25}\n')
    job(tracking, tmp_path).round(tmp_path)
    assert metrics_of(tracking) == [("loss", 0.5, 0), ("loss", 0.25, 1)]


def test_lines_of_another_run_count_for_nothing(tracking: Any, tmp_path: Path) -> None:
    (tmp_path / run_metrics.SENT).write_text("r0 1")
    (tmp_path / "metrics.jsonl").write_text('{"loss": 0.5}\n')
    job(tracking, tmp_path).round(tmp_path)
    assert metrics_of(tracking) == [("loss", 0.5, 0)]


@pytest.mark.parametrize(
    ("file", "exit_code", "status"),
    [
        ("metrics.jsonl", None, "FINISHED"),
        ("metrics.json", None, "FINISHED"),
        ("", None, "FAILED"),
        ("", "0", "FINISHED"),
        ("metrics.json", "1", "FAILED"),
        ("metrics.jsonl", "-15", "FAILED"),
        ("metrics.json", "", "FAILED"),
    ],
)
def test_a_run_ends_as_its_command_did(
    tracking: Any, tmp_path: Path, file: str, exit_code: str | None, status: str
) -> None:
    if file:
        (tmp_path / file).write_text('{"loss": 1}\n')
    job(tracking, tmp_path).end(tmp_path, exit_code)
    assert tracking.asked[-1][1]["status"] == status


@pytest.mark.parametrize(
    ("env", "sent"),
    [
        ({"MLFLOW_TRACKING_TOKEN": "t"}, "Bearer t"),
        ({"MLFLOW_TRACKING_USERNAME": "u", "MLFLOW_TRACKING_PASSWORD": "p"}, "Basic dTpw"),
        ({}, ""),
    ],
)
def test_it_logs_in_as_the_environment_says(tracking: Any, tmp_path: Path, env: dict[str, str], sent: str) -> None:
    job(tracking, tmp_path, **env).round(tmp_path)
    assert {login for _, _, login in tracking.asked} == {sent}


def test_a_broken_authority_is_said_and_costs_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert sender({"MLFLOW_TRACKING_URI": "https://127.0.0.1:9", "MLFLOW_CA": "none"}, {}, tmp_path) is None
    assert "metrics are not sent: MLFLOW_CA is not a certificate" in capsys.readouterr().out


def test_a_server_that_is_away_costs_nothing_and_is_said_once(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    found = sender({"MLFLOW_TRACKING_URI": "http://127.0.0.1:9"}, {}, tmp_path)
    assert found and not found.round(tmp_path) and not found.round(tmp_path)
    found.end(tmp_path)
    assert capsys.readouterr().out.count("metrics are not sent yet: http://127.0.0.1:9 does not answer") == 1


def test_without_a_server_nothing_is_sent(tmp_path: Path) -> None:
    assert sender({}, {}, tmp_path) is None


@pytest.mark.parametrize("found", [[1], "x", None, {"a": "1", "b": True, "c": float("inf"), "d": float("nan")}])
def test_what_is_no_number_is_left_out(found: Any) -> None:
    assert run_metrics.numbers(found) == {}
