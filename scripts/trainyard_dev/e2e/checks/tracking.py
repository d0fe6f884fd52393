"""Metrics of a training job at an MLflow server: from one value, through the team's network policy, as API calls."""

from typing import Any

from trainyard_dev.e2e import runs
from trainyard_dev.e2e.checks import seeing
from trainyard_dev.e2e.context import OTHER, Context
from trainyard_dev.e2e.entry import TORCH, UPGRADES, check
from trainyard_dev.e2e.recorder import Figures, patience, require
from trainyard_dev.e2e.releases import changed
from trainyard_dev.e2e.sites import tracking_server
from trainyard_dev.e2e.sites.listening import Listener

SERVER = Listener("mlflow", tracking_server.__file__, tracking_server.PORT)
VALUE = "global.contract.mlflow.trackingUri"
SENT_S = 60.0
RATE = "0.5"


@check("seeing.mlflow", title="one value sends a job's parameters and metrics to an MLflow server in the cluster",
       shares={UPGRADES}, images=(TORCH, "pipeline"),
       inputs=("scripts/trainyard_agent/runs/run_metrics.py", "scripts/trainyard_agent/runs/run_files.py",
               "scripts/trainyard_agent/runs/mlflow.py", "scripts/trainyard/kinds/environment.py",
               "charts/trainyard/templates/_mlflow.tpl", "charts/trainyard/templates/team-network.yaml",
               "scripts/trainyard_dev/e2e/sites/tracking_server.py"))  # fmt: skip
def mlflow(context: Context, figures: Figures) -> None:
    """A mock server records its requests: they must have the run, its parameter and its numbers."""
    with runs.copied(seeing.FLOW) as folder:
        named = changed(context, f"{VALUE}={SERVER.url}")
        with SERVER.there(context), named as figures["upgrade_seconds"]:
            run = seeing.trained(context, RATE, folder)
            wait = patience(SENT_S)
            while not (asked := _of(SERVER.heard(context), run)) or asked[-1]["call"] != "runs/update":
                heard = [one["call"] for one in asked]
                wait(f"the server was not told the end of {run} within {SENT_S:.0f} s: {heard}")
        figures |= {"calls": len(asked), "run": run}
        _require_sent(asked, run)


def _of(asked: list[dict[str, Any]], run: str) -> list[dict[str, Any]]:
    """The requests about one run: other runs use the server, too."""
    return [one for one in asked if run in (one["body"].get("run_id"), one["body"].get("run_name"))]


def _require_sent(asked: list[dict[str, Any]], run: str) -> None:
    """Requires the experiment, the run, its flag, five numbers by step, and its end."""
    mine = _of(asked, run)
    bodies = {one["call"]: one["body"] for one in mine}
    logged = [one["body"] for one in mine if one["call"] == "runs/log-batch"]
    params = {one["key"]: one["value"] for body in logged for one in body.get("params", ())}
    steps = {one["step"]: one["value"] for body in logged for one in body.get("metrics", ()) if one["key"] == "loss"}
    require("runs/create" in bodies, f"the runs are {asked}, without {run}")
    require(bodies["runs/create"]["experiment_id"] == f"{OTHER}/seeing", f"the experiment is {bodies}")
    require(params.get("rate") == RATE, f"the parameters are {params}")
    require(sorted(steps) == list(range(5)), f"losses arrived for the steps {sorted(steps)}")
    require(bodies["runs/update"]["status"] == "FINISHED", f"the run ended {bodies['runs/update']['status']}")
