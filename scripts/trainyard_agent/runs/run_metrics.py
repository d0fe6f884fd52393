"""Metrics that a training command writes, sent to an MLflow server while it runs.

`metrics.jsonl`: one object of numbers per line, with its `step` or numbered in order. `metrics.json`: the last numbers.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from trainyard_agent.runs import mlflow
from trainyard_agent.say import say

LAST, STEPS = "metrics.json", "metrics.jsonl"
TRIES = 3  # at the end; metrics that fail then stay in the store
SENT = ".trainyard-sent"  # in the pod: the lines that a restarted sender needn't send again


class Sender:
    """Sends new metrics; prints each error once, and raises nothing."""

    def __init__(
        self, server: mlflow.Server, experiment: str, name: str, params: Mapping[str, str], root: Path
    ) -> None:
        """`root`: a folder that survives a restart of this container, not of the pod."""
        self._server, self._experiment, self._name, self._params = server, experiment, name, dict(params)
        self._run, self._lines, self._last, self._said, self._sent = "", 0, "", "", root / SENT

    def round(self, folder: Path) -> bool:
        """Sends new metrics; returns whether all were sent."""
        try:
            self._begin()
            self._parameters()
            self._steps(folder / STEPS)
            self._finals(folder / LAST)
        except (mlflow.MlflowError, OSError) as error:
            if str(error) != self._said:
                say(f"metrics are not sent yet: {error}")
                self._said = str(error)
            return False
        return True

    def end(self, folder: Path, exit_code: str | None = None) -> None:
        """The last round. `exit_code`: from the command's parent, "" if it was killed, None if no parent recorded it.

        With `None`, a command that left neither file counts as failed.
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
        self._run = self._server.run(experiment, self._name, {mlflow.TEAM_TAG: self._experiment.partition("/")[0]})
        run, _, lines = self._sent.read_text().partition(" ") if self._sent.is_file() else ("", "", "")
        self._lines = int(lines) if run == self._run and lines.isdecimal() else 0
        say(f"metrics go to {self._server.uri}, experiment {self._experiment}")

    def _parameters(self) -> None:
        """Sends each parameter once. One that the server refuses is reported and left out; metrics continue."""
        try:
            self._server.log(self._run, params=self._params)
        except mlflow.MlflowError as error:
            if not error.code or len(self._params) < 2:
                self._left_out(error)
            else:
                for name, value in self._params.items():
                    try:
                        self._server.log(self._run, params={name: value})
                    except mlflow.MlflowError as one:
                        self._left_out(one)
        self._params = {}

    def _left_out(self, error: mlflow.MlflowError) -> None:
        if not error.code:
            raise error
        say(f"skipped a parameter: {error}")

    def _steps(self, file: Path) -> None:
        """Sends complete new lines."""
        if not file.is_file():
            return
        whole = file.read_text(errors="replace").split("\n")[:-1]
        if len(whole) == self._lines:
            return
        metrics = [
            mlflow.metric(name, value, step)
            for at, line in enumerate(whole[self._lines :], self._lines)
            for name, value, step in _of_line(line, at)
        ]
        self._server.log(self._run, metrics=metrics)
        self._lines = len(whole)
        self._sent.write_text(f"{self._run} {self._lines}")

    def _finals(self, file: Path) -> None:
        text = file.read_text(errors="replace") if file.is_file() else ""
        if text == self._last:
            return
        try:
            found = numbers(json.loads(text))
        except ValueError:  # incomplete line
            return
        self._server.log(self._run, metrics=[mlflow.metric(name, value) for name, value in found.items()])
        self._last = text


def numbers(found: object) -> dict[str, float]:
    """The finite numbers of an object, by name; {} for anything else."""
    if not isinstance(found, dict):
        return {}
    return {
        str(name): float(value)
        for name, value in found.items()
        if isinstance(value, (int, float)) and not isinstance(value, bool) and abs(value) <= sys.float_info.max
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


def sender(env: Mapping[str, str], params: Mapping[str, str], root: Path) -> Sender | None:
    """The sender for the pod's environment; None if it names no server, or the server's authority can't be read."""
    uri = env.get("MLFLOW_TRACKING_URI", "")
    if not uri:
        return None
    experiment = env.get("MLFLOW_EXPERIMENT_NAME") or "trainyard"
    try:
        server = mlflow.Server(uri, env)
    except OSError as error:
        say(f"metrics are not sent: MLFLOW_CA is not a certificate: {error}")
        return None
    return Sender(server, experiment, env.get("TRAINYARD_JOB", "run"), params, root)
