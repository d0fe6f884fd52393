"""Metrics of a training job at an MLflow server: from one value, through the team's network policy, into its calls."""

from __future__ import annotations

import json
import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from trainyard_dev.chart import package as chart
from trainyard_dev.e2e import tracking_server
from trainyard_dev.e2e.checks import seeing
from trainyard_dev.e2e.context import OTHER, Context
from trainyard_dev.e2e.install import read_contract
from trainyard_dev.e2e.recorder import require
from trainyard_dev.e2e.releases import put

ID = "seeing.mlflow"
NAME, PLACE = "mlflow", "trainyard-e2e-mlflow"  # of pod and Service, and their namespace
URI = f"http://{NAME}.{PLACE}.svc:{tracking_server.PORT}"
VALUE = "global.contract.mlflow.trackingUri"
START_S, SENT_S = 60, 60.0
RATE = "0.5"


def mlflow(context: Context) -> None:
    """A stand-in for the server keeps what it is asked; what it kept is the run, its parameter and its numbers."""
    title = "one value sends a job's parameters and metrics to an MLflow server in the cluster"
    with context.recorder.check(ID, title) as figures, tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch) / "code"
        shutil.copytree(seeing.FLOW, folder)
        with _server(context), _named(context, Path(scratch)) as figures["upgrade_seconds"]:
            run = seeing.trained(context, RATE, folder)
            end = time.monotonic() + SENT_S
            while not (asked := _asked(context)) or asked[-1]["call"] != "runs/update":
                heard = [one["call"] for one in asked]
                require(time.monotonic() < end, f"the server heard of no end of {run} within {SENT_S:.0f} s: {heard}")
                time.sleep(2)
        figures |= {"calls": len(asked), "run": run}
        _require_sent(asked, run)


def _require_sent(asked: list[dict[str, Any]], run: str) -> None:
    """The experiment, the run, its flag, five numbers by step, its end."""
    bodies = {one["call"]: one["body"] for one in asked}
    logged = [one["body"] for one in asked if one["call"] == "runs/log-batch"]
    params = {one["key"]: one["value"] for body in logged for one in body.get("params", ())}
    steps = {one["step"]: one["value"] for body in logged for one in body.get("metrics", ()) if one["key"] == "loss"}
    require(bodies["experiments/create"]["name"] == f"{OTHER}/seeing", f"the experiment is {bodies}")
    require(bodies["runs/create"]["run_name"] == run, f"the run is {bodies['runs/create']}, due is {run}")
    require(params.get("rate") == RATE, f"the parameters are {params}")
    require(sorted(steps) == list(range(5)), f"losses came of the steps {sorted(steps)}")
    require(bodies["runs/update"]["status"] == "FINISHED", f"the run ended {bodies['runs/update']['status']}")


@contextmanager
def _server(context: Context) -> Iterator[None]:
    """The stand-in in a namespace of its own, which no rule of the platform's concerns."""
    program = Path(tracking_server.__file__).read_text()
    pod = context.pod(NAME, 'exec python3 -c "$PROGRAM"', image=context.image("pipeline"), labels={"app": NAME})
    pod["spec"]["containers"][0]["env"] = [{"name": "PROGRAM", "value": program}]
    service = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": NAME}}
    service |= {"spec": {"selector": {"app": NAME}, "ports": [{"port": tracking_server.PORT}]}}
    context.kubectl("create", "namespace", PLACE)
    try:
        context.kubectl.apply([pod, service], PLACE)
        words = ("wait", "-n", PLACE, "--for=condition=Ready", f"pod/{NAME}", f"--timeout={START_S}s")
        context.kubectl(*words, timeout=START_S + 10)
        yield
    finally:
        context.kubectl("delete", "namespace", PLACE, "--timeout=60s", check=False, timeout=90)


@contextmanager
def _named(context: Context, scratch: Path) -> Iterator[float]:
    """The server is the platform's; gives the seconds of the upgrade."""
    package = chart.package(scratch)
    try:
        seconds = put(context, "upgrade", package, change=f"{VALUE}={URI}")
        context.contract = read_contract(context.kubectl)
        yield seconds
    finally:
        put(context, "upgrade", package, change=f"{VALUE}=")
        context.contract = read_contract(context.kubectl)


def _asked(context: Context) -> list[dict[str, Any]]:
    """The server's calls, in their order."""
    said = context.kubectl("logs", "-n", PLACE, NAME, check=False).stdout
    return [json.loads(line) for line in said.splitlines() if line.startswith("{")]
