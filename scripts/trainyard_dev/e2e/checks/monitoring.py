"""Monitoring, an option of the chart: switched on by one upgrade, Prometheus reaches everybody it is to ask."""

from __future__ import annotations

import json
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from trainyard import components
from trainyard_dev.e2e.context import SYSTEM, Context
from trainyard_dev.e2e.recorder import require
from trainyard_dev.e2e.releases import RELEASE, changed

TARGETS = "seeing.targets"
TITLE = "monitoring, switched on, asks every endpoint of the platform and each is up; off again its servers are gone"
IMAGES = ("prometheus", "alertmanager", "kube-state-metrics", "node-exporter", "otel-collector")
# What is asked beside the endpoints of components.
STORE, DCGM = "minio", "dcgm"
CLUSTER = ("apiserver", "cadvisor", "kubelet")
# One series of each job that nothing else gives: a page that answers and has nothing in it is up as well.
SERIES = {
    "apiserver": "apiserver_request_total",
    "cadvisor": "container_memory_working_set_bytes",
    "dcgm": "DCGM_FI_DEV_GPU_UTIL",
    "exporter": "trainyard_node_gpus",
    "kube-state-metrics": "kube_node_info",
    "kubelet": "kubelet_running_pods",
    "minio": "minio_cluster_capacity_raw_total_bytes",
    "node-exporter": "node_memory_MemTotal_bytes",
    "nfs-provisioner": "trainyard_nfs_bytes",
    "volcano-scheduler": "volcano_e2e_scheduling_latency_milliseconds_count",
}
PATIENCE_S, POLL_S = 180.0, 3.0
SERVERS = (
    f"statefulset/{RELEASE}-prometheus",
    f"statefulset/{RELEASE}-alertmanager",
    f"daemonset/{RELEASE}-node-exporter",
    f"deployment/{RELEASE}-kube-state-metrics",
    f"deployment/{RELEASE}-exporter",
    f"daemonset/{RELEASE}-mock-dcgm",
    f"daemonset/{RELEASE}-logs",
)


def targets(context: Context) -> None:
    """On, every target up and full of series, rules without an error; off, and the volumes removed."""
    with context.recorder.check(TARGETS, TITLE) as figures:
        logs = (f"logs.enabled={said}" for said in ("true", "false"))  # their collectors are asked as well
        with monitored(context, *logs) as figures["seconds"], prometheus(context) as port:
            figures["targets"] = _all_up(port, due(context.gpu))
            figures["series"] = _full(port, due(context.gpu))
            figures["rules"] = _rules(port)
        left = [one for one in SERVERS if context.kubectl.find(one, "-n", SYSTEM)]
        require(not left, f"still there: {', '.join(left)}")


@contextmanager
def monitored(context: Context, change: str = "", back: str = "") -> Iterator[float]:
    """Monitoring is on as long as the block runs, then gone with what it kept; gives the seconds of the upgrade.

    Args:
        change, back: what is set besides (`a.b=c,d=e`), and what takes it back.
    """
    on = ",".join(filter(None, ("monitoring.enabled=true", change)))
    off = ",".join(filter(None, ("monitoring.enabled=false", back)))
    try:
        with changed(context, on, off) as seconds:
            yield seconds
    finally:
        claims = [f"data-{RELEASE}-{one}-0" for one in ("prometheus", "alertmanager")]
        context.kubectl("delete", "pvc", "-n", SYSTEM, *claims, "--ignore-not-found", "--wait=false", check=False)


@contextmanager
def prometheus(context: Context) -> Iterator[int]:
    """A port of this machine that leads to Prometheus, as long as the block runs."""
    with context.kubectl.forward(f"service/{RELEASE}-prometheus", 9090, SYSTEM) as port:
        yield port


def ask(port: int, path: str, **parameters: str) -> Any:
    """`data` of an answer of Prometheus' API.

    Raises:
        CheckError: it says that something is wrong, or nothing.
    """
    url = f"http://127.0.0.1:{port}/api/v1/{path}?{urllib.parse.urlencode(parameters)}"
    try:
        with urllib.request.urlopen(url, timeout=30) as answer:
            said = json.load(answer)
    except (OSError, urllib.error.URLError, ValueError) as error:
        require(False, f"Prometheus gives no answer to {path}: {error}")
    require(said.get("status") == "success", f"Prometheus says to {path}: {said.get('error')}")
    return said["data"]


def due(gpu: str) -> set[str]:
    """Names of the jobs that have a target each, on the test cluster; real GPUs have no series there."""
    named = {str(one["name"]) for one in components.endpoints()} | set(CLUSTER) | {STORE}
    return named - ({DCGM} if gpu == "real" else set())


def missing(active: list[dict[str, Any]], due: set[str]) -> list[str]:
    """What keeps the targets from being complete, in words: a job without one, or one that is not up."""
    jobs = {one["labels"]["job"] for one in active}
    said = [f"{job} has no target" for job in sorted(due - jobs)]
    for one in active:
        if one["health"] != "up":
            said.append(f"{one['labels']['job']} at {one['scrapeUrl']}: {one['lastError'] or 'not asked yet'}")
    return said


def _all_up(port: int, due: set[str]) -> dict[str, int]:
    end = time.monotonic() + PATIENCE_S
    while True:
        active = ask(port, "targets", state="active")["activeTargets"]
        wrong = missing(active, due)
        if not wrong:
            jobs = [one["labels"]["job"] for one in active]
            return {job: jobs.count(job) for job in sorted(set(jobs))}
        require(time.monotonic() < end, f"after {PATIENCE_S:.0f} s: {'; '.join(wrong)}")
        time.sleep(POLL_S)


def _full(port: int, due: set[str]) -> dict[str, int]:
    """How many series there are of each name of SERIES."""
    end, found = time.monotonic() + PATIENCE_S, {name: 0 for job, name in SERIES.items() if job in due}
    while True:
        for name in found:
            result = ask(port, "query", query=f"count({name})")["result"]
            found[name] = int(result[0]["value"][1]) if result else 0
        empty = [name for name, count in found.items() if not count]
        if not empty:
            return found
        require(time.monotonic() < end, f"no series of {', '.join(empty)} after {PATIENCE_S:.0f} s")
        time.sleep(POLL_S)


def _rules(port: int) -> int:
    """How many rules were evaluated. Raises CheckError for one that fails."""
    rules = [rule for group in ask(port, "rules")["groups"] for rule in group["rules"]]
    broken = [f"{rule['name']}: {rule['lastError']}" for rule in rules if rule.get("lastError")]
    require(not broken, "; ".join(broken))
    return len(rules)
