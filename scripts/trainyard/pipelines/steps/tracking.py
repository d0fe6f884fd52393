"""Metrics of a job that wrote to {out}, sent to the site's MLflow server by its step if no sidecar does."""

import tempfile
from collections.abc import Mapping
from pathlib import Path

from trainyard.kinds.flags import flags, of_program
from trainyard.pipelines.steps.request import Request
from trainyard_agent.runs import run_metrics


def send(request: Request, folder: Path, env: Mapping[str, str]) -> None:
    """Sends metrics once, when the job has succeeded; nothing without a server, or if the job's own pods send them.

    A server that doesn't answer delays the step by half a minute and never fails it.
    """
    spec = request.spec()
    if spec.tracked:
        return
    told = {**env, "MLFLOW_EXPERIMENT_NAME": f"{request.run.team}/{request.given['name']}", "TRAINYARD_JOB": spec.name}
    with tempfile.TemporaryDirectory() as state:
        if sender := run_metrics.sender(told, flags(of_program(spec.command)), Path(state)):
            sender.end(folder, "0")
