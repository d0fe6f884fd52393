"""The number of a model's pods follows its load: by CPU, and by requests per second."""

import json
import time
from typing import Any

from trainyard_dev.e2e import asking
from trainyard_dev.e2e.checks import metrics
from trainyard_dev.e2e.checks.monitoring import monitored
from trainyard_dev.e2e.context import NAMESPACE, Context
from trainyard_dev.e2e.recorder import patience, require
from trainyard_dev.e2e.releases import changed
from trainyard_dev.e2e.sites import adapter, served
from trainyard_dev.e2e.sites.served import MODEL, NAME

MOST = 4
UP_S, DOWN_S = 300.0, 420.0
LONG = 200000  # more requests than are sent before the load stops
METRIC = "model_requests_per_second"


def by_cpu(context: Context, figures: dict[str, Any]) -> None:
    """Scales by CPU, with metrics-server switched on meanwhile: the autoscaler queries it."""
    with changed(context, metrics.ON):
        version = _one(context)
        served.serve(context, version, "--scale-by", "cpu", "--min", "1", "--max", str(MOST), "--cpu", "50m")
        _await_number(context, figures)
        _there_and_back(context, figures, rate=300)
    served.serve(context, version, *served.USUAL)


def by_requests(context: Context, figures: dict[str, Any]) -> None:
    """Scales by requests: Prometheus scrapes the servers, prometheus-adapter queries it, the autoscaler the adapter."""
    with monitored(context, "monitoring.modelServers=true"), adapter.installed(context):
        version = _one(context)
        words = ("--scale-by", "requests", "--target", "20", "--scale-source", "adapter", "--cpu", "100m")
        served.serve(context, version, *words, "--min", "1", "--max", str(MOST))
        figures["first number after s"] = adapter.await_series(context, METRIC, MODEL)
        _await_number(context, figures)
        _there_and_back(context, figures, rate=100)
    served.serve(context, version, *served.USUAL)


def _one(context: Context) -> str:
    """Starts one replica of a version and sends it a request; returns the version."""
    version, _ = served.begin(context)
    served.serve(context, version, "--replicas", "1")
    _await_replicas(context, 1, 120)
    # Series come from requests: a server without any has none.
    asking.load(context, MODEL, 20, 20)
    return version


def _await_number(context: Context, figures: dict[str, Any]) -> None:
    """Waits until the autoscaler has a value to use."""
    wait = patience(UP_S, 3)
    while True:
        found = context.kubectl.find("hpa", NAME, "-n", NAMESPACE) or {}
        told = {one["type"]: one for one in (found.get("status") or {}).get("conditions") or []}
        if (told.get("ScalingActive") or {}).get("status") == "True":
            figures["at rest"] = json.dumps(found["status"].get("currentMetrics"))
            return
        wait(f"the autoscaler has no metric: {told}")


def _there_and_back(context: Context, figures: dict[str, Any], rate: float) -> None:
    require(_replicas(context) == (1, 1), f"{_replicas(context)} replicas exist before the load")
    began = time.monotonic()
    figures["requests a second"] = rate
    with asking.LoadPod(context, MODEL, LONG, rate):
        _await_replicas(context, MOST, UP_S)
        figures["to four, s"] = round(time.monotonic() - began)
    began = time.monotonic()
    _await_replicas(context, 1, DOWN_S)
    figures["back to one, s"] = round(time.monotonic() - began)


def _replicas(context: Context) -> tuple[int, int]:
    """How many replicas are wanted, and how many are ready."""
    found = served.deployment(context)
    return int(found["spec"]["replicas"]), int((found.get("status") or {}).get("readyReplicas", 0))


def _await_replicas(context: Context, count: int, seconds: float) -> None:
    end = time.monotonic() + seconds
    while (there := _replicas(context)) != (count, count):
        if time.monotonic() > end:
            hpa = (context.kubectl.find("hpa", NAME, "-n", NAMESPACE) or {}).get("status")
            require(False, f"{there[1]} of {there[0]} replicas are ready after {seconds:.0f} s, not {count}: {hpa}")
        time.sleep(2)
