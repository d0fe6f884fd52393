"""Records a run as a run of an MLflow server: its parameters and metrics, over MLflow's REST API 2.0.

Small on purpose: the package mlflow has a hundred dependencies. A server that doesn't answer never delays a job.
"""

from __future__ import annotations

import base64
import json
import re
import ssl
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from typing import Any

Object = dict[str, Any]
TIMEOUT_S = 10.0
AT_ONCE = {"metrics": 1000, "params": 100, "tags": 100}  # maximum per request
LONGEST_PARAM = 6000  # characters
RUN_TAG, TEAM_TAG = "trainyard.run", "trainyard.team"
FINISHED, FAILED = "FINISHED", "FAILED"
NO_NAME = re.compile(r"[^\w\-. /]+")  # characters that MLflow allows in no name


class MlflowError(Exception):
    """The server refused or did not answer; `code` is MLflow's error code, "" if there is none."""

    def __init__(self, what: str, code: str = "") -> None:
        super().__init__(what)
        self.code = code


class Server:
    """One tracking server, with the log-in from the environment.

    MLFLOW_TRACKING_TOKEN, or MLFLOW_TRACKING_USERNAME and MLFLOW_TRACKING_PASSWORD; MLFLOW_CA holds the PEM of the
    server's certificate authority.
    """

    def __init__(self, uri: str, env: Mapping[str, str]) -> None:
        self.uri = uri.rstrip("/")
        self._headers = {"Content-Type": "application/json", **_login(env)}
        self._tls = ssl.create_default_context(cadata=env["MLFLOW_CA"]) if env.get("MLFLOW_CA") else None

    def experiment(self, name: str) -> str:
        """The id of the experiment of that name, which is created if it is missing. Raises MlflowError."""
        for last in (False, True):
            try:
                return str(self._get("experiments/get-by-name", experiment_name=name)["experiment"]["experiment_id"])
            except MlflowError as error:
                if last or error.code != "RESOURCE_DOES_NOT_EXIST":
                    raise
            try:
                return str(self._post("experiments/create", {"name": name})["experiment_id"])
            except MlflowError as error:
                if error.code != "RESOURCE_ALREADY_EXISTS":  # another client was faster
                    raise
        raise MlflowError(f"{self.uri}: the experiment {name} is created and deleted at the same time")

    def run(self, experiment: str, name: str, tags: Mapping[str, str]) -> str:
        """The id of the run tagged with this name, from an earlier start if there was one. Raises MlflowError."""
        query = {"experiment_ids": [experiment], "filter": f"tags.`{RUN_TAG}` = '{name}'", "max_results": 1}
        if found := self._post("runs/search", query).get("runs"):
            run_id = str(found[0]["info"]["run_id"])
            self._post("runs/update", {"run_id": run_id, "status": "RUNNING"})
            return run_id
        given = [{"key": key, "value": value} for key, value in {**tags, RUN_TAG: name, "mlflow.runName": name}.items()]
        body = {"experiment_id": experiment, "run_name": name, "start_time": _now_ms(), "tags": given}
        return str(self._post("runs/create", body)["run"]["info"]["run_id"])

    def log(self, run: str, *, params: Mapping[str, str] | None = None, metrics: Iterable[Object] = ()) -> None:
        """Log parameters, and metrics as {key, value, step, timestamp (ms)}. Raises MlflowError."""
        named = [{"key": _name(key), "value": str(value)[:LONGEST_PARAM]} for key, value in (params or {}).items()]
        for key, items in (("params", named), ("metrics", metrics)):
            for some in _batches(items, AT_ONCE[key]):
                self._post("runs/log-batch", {"run_id": run, key: some})

    def end(self, run: str, status: str) -> None:
        """End the run as FINISHED or FAILED. Raises MlflowError."""
        self._post("runs/update", {"run_id": run, "status": status, "end_time": _now_ms()})

    def _get(self, call: str, **query: str) -> Object:
        return self._ask(urllib.request.Request(f"{self._url(call)}?{urllib.parse.urlencode(query)}"))

    def _post(self, call: str, body: Object) -> Object:
        return self._ask(urllib.request.Request(self._url(call), json.dumps(body).encode(), method="POST"))

    def _url(self, call: str) -> str:
        return f"{self.uri}/api/2.0/mlflow/{call}"

    def _ask(self, request: urllib.request.Request) -> Object:
        for name, value in self._headers.items():
            request.add_header(name, value)
        try:
            with urllib.request.urlopen(request, timeout=TIMEOUT_S, context=self._tls) as answer:
                found = json.loads(answer.read() or b"{}")
        except urllib.error.HTTPError as error:
            raise _refusal(self.uri, error) from None
        except (OSError, ValueError) as error:
            raise MlflowError(f"{self.uri} does not answer: {getattr(error, 'reason', error)}") from None
        if not isinstance(found, dict):
            raise MlflowError(f"{self.uri} is not an MLflow server")
        return found


def metric(key: str, value: float, step: int = 0) -> Object:
    """One number in the form that `log` accepts."""
    return {"key": _name(key), "value": value, "step": step, "timestamp": _now_ms()}


def _refusal(uri: str, error: urllib.error.HTTPError) -> MlflowError:
    try:
        said = json.loads(error.read())
        return MlflowError(f"{uri} refuses: {said['message']}", str(said["error_code"]))
    except (ValueError, KeyError, TypeError):
        return MlflowError(f"{uri} refuses with code {error.code}")


def _login(env: Mapping[str, str]) -> dict[str, str]:
    if token := env.get("MLFLOW_TRACKING_TOKEN"):
        return {"Authorization": f"Bearer {token}"}
    if user := env.get("MLFLOW_TRACKING_USERNAME"):
        pair = f"{user}:{env.get('MLFLOW_TRACKING_PASSWORD', '')}"
        return {"Authorization": f"Basic {base64.b64encode(pair.encode()).decode()}"}
    return {}


def _name(text: str) -> str:
    return NO_NAME.sub("_", text)[:250]


def _batches(items: Iterable[Object], size: int) -> Iterator[list[Object]]:
    left = iter(items)
    while some := list(islice(left, size)):
        yield some


def _now_ms() -> int:
    return int(time.time() * 1000)
