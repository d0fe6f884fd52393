"""The stand-in of an MLflow server as a pod runs it, and what the check reads from its log."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from trainyard_agent.runs import run_metrics
from trainyard_dev.e2e.checks import tracking as checked
from trainyard_dev.e2e.recorder import CheckError
from trainyard_dev.e2e.sites import tracking_server
from trainyard_dev.e2e.sites.tracking_server import Server

LOSSES = "".join(json.dumps({"step": step, "loss": 1 / (step + 1)}) + "\n" for step in range(5))


def sent(server: Server, folder: Path, exit_code: str) -> list[dict[str, Any]]:
    """The calls of a job as the server's log has them."""
    (folder / "metrics.jsonl").write_text(LOSSES)
    uri = f"http://127.0.0.1:{server.server_address[1]}"
    env = {"MLFLOW_TRACKING_URI": uri, "MLFLOW_EXPERIMENT_NAME": "speech/seeing", "TRAINYARD_JOB": "seeing-x"}
    sender = run_metrics.sender(env, {"rate": checked.RATE}, folder)
    assert sender
    sender.end(folder, exit_code)
    return [{"call": call, "body": body} for call, body, _ in server.asked]


def test_what_the_agent_sends_is_what_the_check_wants(tracking: Server, tmp_path: Path) -> None:
    asked = sent(tracking, tmp_path, "0")
    assert asked[-1]["call"] == "runs/update"
    checked._require_sent(asked, "seeing-x")
    with pytest.raises(CheckError, match="the runs are"):
        checked._require_sent(asked, "seeing-y")


def test_a_run_that_failed_is_not_what_the_check_wants(tracking: Server, tmp_path: Path) -> None:
    with pytest.raises(CheckError, match="the run ended FAILED"):
        checked._require_sent(sent(tracking, tmp_path, "1"), "seeing-x")


def test_the_stand_in_travels_as_text_and_needs_nothing_but_python() -> None:
    text = Path(tracking_server.__file__).read_text()
    assert "$(" not in text, "Kubernetes would replace it"
    unserved = text.replace('"__main__"', '"none"')
    done = subprocess.run([sys.executable, "-I", "-S", "-c", unserved], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
