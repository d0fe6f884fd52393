"""What a training command writes as metrics, sent to an MLflow server while it runs.

`metrics.jsonl`: an object of numbers a line, with its `step` or in their order. `metrics.json`: the last numbers.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from trainyard_agent import mlflow
from trainyard_agent.say import say

LAST, STEPS = "metrics.json", "metrics.jsonl"
TRIES = 3  # at the end; what is lost then stays in the store


class Sender:
    """Sends what is new; says what goes wrong once, and raises nothing."""

    def __init__(self, server: mlflow.Server, experiment: str, name: str, params: Mapping[str, str]) -> None:
        self._server, self._experiment, self._name, self._params = server, experiment, name, params
        self._run, self._lines, self._last, self._said = "", 0, "", ""

    def round(self, folder: Path) -> bool:
        """Whether all that is there was sent."""
        try:
            self._begin()
            self._steps(folder / STEPS)
            self._finals(folder / LAST)
        except (mlflow.MlflowError, OSError) as error:
            if str(error) != self._said:
                say(f"metrics are not sent yet: {error}")
                self._said = str(error)
            return False
        return True

    def end(self, folder: Path, exit_code: str | None = None) -> None:
        """The last round. `exit_code`: as the command's parent left it, "" when it was killed, None where none looked.

        Then a command that left neither file is taken for one that failed.
        """
        for _ in range(TRIES):
            if self.round(folder):
                break
        try:
            if self._run:
                written = any((folder / name).is_file() for name in (LAST, STEPS))
                good = written if exit_code is None else exit_code == "0"
                self._server.end(self._run, mlflow.FINISHED if good else mlflow.FAILED)
        except mlflow.MlflowError as error:
            say(f"the end is not sent: {error}")

    def _begin(self) -> None:
        if self._run:
            return
        experiment = self._server.experiment(self._experiment)
        run = self._server.run(experiment, self._name, {mlflow.TEAM_TAG: self._experiment.partition("/")[0]})
        self._server.log(run, params=self._params)
        self._run = run
        say(f"metrics go to {self._server.uri}, experiment {self._experiment}")

    def _steps(self, file: Path) -> None:
        """Lines that are whole and new."""
        if not file.is_file():
            return
        whole = file.read_text(errors="replace").split("\n")[:-1]
        metrics = [
            mlflow.metric(name, value, step)
            for at, line in enumerate(whole[self._lines :], self._lines)
            for name, value, step in _of_line(line, at)
        ]
        self._server.log(self._run, metrics=metrics)
        self._lines = len(whole)

    def _finals(self, file: Path) -> None:
        text = file.read_text(errors="replace") if file.is_file() else ""
        if text == self._last:
            return
        try:
            found = numbers(json.loads(text))
        except ValueError:  # half written
            return
        self._server.log(self._run, metrics=[mlflow.metric(name, value) for name, value in found.items()])
        self._last = text


def numbers(found: object) -> dict[str, float]:
    """Names with finite numbers of an object; {} for anything else."""
    if not isinstance(found, dict):
        return {}
    return {
        str(name): float(value)
        for name, value in found.items()
        if isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)
    }


def _of_line(line: str, at: int) -> Iterator[tuple[str, float, int]]:
    try:
        found: Any = json.loads(line)
    except ValueError:
        return
    named = numbers(found)
    step = int(named.pop("step", at))
    for name, value in named.items():
        yield name, value, step


def sender(env: Mapping[str, str], params: Mapping[str, str]) -> Sender | None:
    """By the pod's environment; None where no server is named."""
    uri = env.get("MLFLOW_TRACKING_URI", "")
    if not uri:
        return None
    experiment = env.get("MLFLOW_EXPERIMENT_NAME") or "trainyard"
    return Sender(mlflow.Server(uri, env), experiment, env.get("TRAINYARD_JOB", "run"), params)
