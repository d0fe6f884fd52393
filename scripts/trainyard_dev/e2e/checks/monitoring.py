"""Monitoring, an option of the chart: switched on by one upgrade, Prometheus reaches all of its targets."""

import json
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

from trainyard import components
from trainyard_dev.chart.options import switched
from trainyard_dev.e2e import options
from trainyard_dev.e2e.checks import costs, network
from trainyard_dev.e2e.checks.costs import COSTS
from trainyard_dev.e2e.context import SYSTEM, Context
from trainyard_dev.e2e.entry import MONITORING, PEOPLE, SERVING, TRAINS, UPGRADES, check
from trainyard_dev.e2e.recorder import patience, require
from trainyard_dev.e2e.releases import RELEASE, changed

TARGETS, OFF = "seeing.targets", "seeing.off"
IDS = (TARGETS, COSTS, OFF)
TITLE = "monitoring, when enabled, scrapes every endpoint of the platform, and each is up"
OFF_TITLE = "monitoring and logs, when disabled, leave only series and silences"
# Targets in addition to the components' endpoints.
STORE, DCGM = "minio", "dcgm"
# Further options with targets.
MORE = tuple(
    one.name for one in components.all_components() if one.optional and one.metrics and one.name not in options.ALL
)
SWITCH = ",".join((options.ON, *switched(*MORE)))
IMAGES = (*options.IMAGES, *(image for name in MORE for image in components.find(name).images))
CLUSTER = ("apiserver", "cadvisor", "kubelet")
# A series of each job that no other source provides: a target whose page is empty is up as well.
SERIES = {
    "apiserver": "apiserver_request_total",
    "cadvisor": "container_memory_working_set_bytes",
    "dcgm": "DCGM_FI_DEV_GPU_UTIL",
    "exporter": "trainyard_node_gpus",
    "kube-state-metrics": "kube_node_info",
    "kubelet": "kubelet_running_pods",
    "metrics-server": "metrics_server_storage_points",
    "minio": "minio_cluster_capacity_raw_total_bytes",
    "node-exporter": "node_memory_MemTotal_bytes",
    "nfs-provisioner": "trainyard_nfs_bytes",
    "volcano-scheduler": "volcano_e2e_scheduling_latency_milliseconds_count",
}
PATIENCE_S, POLL_S = 180.0, 3.0


@check(*IDS, rank=TRAINS, locks={MONITORING, SERVING, PEOPLE}, shares={UPGRADES},
       images=IMAGES,
       inputs=("charts/monitoring", "charts/logs", "charts/*/component.yaml", "scripts/trainyard_agent"))  # fmt: skip
def targets(context: Context) -> None:
    """Switched on: every target up and full of series, no rule with an error, and their cost; off, and what is left."""
    recorder = context.recorder
    brought: dict[str, options.Objects] = {}
    with ExitStack() as on:
        with recorder.check(TARGETS, TITLE) as figures:
            figures["seconds"] = on.enter_context(changed(context, SWITCH))
            brought, began, since = options.objects(context), costs.look(context), time.monotonic()
            with prometheus(context) as port:
                asked = due(context.gpu, *MORE)
                figures["targets"] = all_up(port, asked)
                counted = (name for job, name in SERIES.items() if job in asked)
                figures["series"] = {name: number(port, f"count({name})") for name in counted}
                figures["rules"] = _rules(port)
            figures["endpoints closed to a team's pod"] = network.series_closed(context)
        if brought:
            with recorder.check(COSTS, costs.TITLE) as figures:
                time.sleep(max(0.0, costs.MEAN_S - (time.monotonic() - since)))
                costs.since(context, began, figures)
        with recorder.check(OFF, OFF_TITLE) as figures:
            on.close()
            require(brought, "they were never enabled")
            left = options.left(context, brought)
            require(not left, f"still exists: {', '.join(left)}")
            figures |= {"gone": sum(map(len, brought.values())), "stays": options.require_claims(context, options.ALL)}
    options.drop_claims(context)


@contextmanager
def monitored(context: Context, more: str = "") -> Iterator[float]:
    """Monitoring is on while the block runs, then removed with its data; yields the upgrade's seconds.

    Args:
        more: further values (`a.b=c,d=e`).
    """
    try:
        with changed(context, ",".join(filter(None, ("monitoring.enabled=true", more)))) as seconds:
            yield seconds
    finally:
        options.drop_claims(context)


@contextmanager
def prometheus(context: Context) -> Iterator[int]:
    """A local port that leads to Prometheus, while the block runs."""
    with context.kubectl.forward(f"service/{RELEASE}-prometheus", 9090, SYSTEM) as port:
        yield port


def ask(port: int, path: str, **parameters: str) -> Any:
    """`data` in an answer of Prometheus' API.

    Raises:
        CheckError: it reports an error, or returns nothing.
    """
    url = f"http://127.0.0.1:{port}/api/v1/{path}?{urllib.parse.urlencode(parameters)}"
    try:
        with urllib.request.urlopen(url, timeout=30) as answer:
            said = json.load(answer)
    except (OSError, urllib.error.URLError, ValueError) as error:
        require(False, f"Prometheus gives no answer to {path}: {error}")
    require(said.get("status") == "success", f"Prometheus answered {path} with: {said.get('error')}")
    return said["data"]


def due(gpu: str, *on: str) -> set[str]:
    """Names of the jobs that must have a target on the test cluster; real GPUs have no series there.

    Args:
        on: further enabled components, in addition to `options.ALL`.
    """
    off = {one.name for one in components.all_components() if one.optional} - {*options.ALL, *on}
    named = {str(one["name"]) for one in components.endpoints() if one["component"] not in off}
    return (named | set(CLUSTER) | {STORE}) - ({DCGM} if gpu == "real" else set())


def missing(active: list[dict[str, Any]], due: set[str]) -> list[str]:
    """The problems of incomplete targets, in words: a job without a target, or one that is not up."""
    jobs = {one["labels"]["job"] for one in active}
    said = [f"{job} has no target" for job in sorted(due - jobs)]
    for one in active:
        if one["health"] != "up":
            said.append(f"{one['labels']['job']} at {one['scrapeUrl']}: {one['lastError'] or 'not scraped yet'}")
    return said


def all_up(port: int, due: set[str]) -> dict[str, int]:
    """How many targets each job has, once all of them are up. Raises CheckError if they are not in time."""
    wait = patience(PATIENCE_S, POLL_S)
    while True:
        active = ask(port, "targets", state="active")["activeTargets"]
        wrong = missing(active, due)
        if not wrong:
            jobs = [one["labels"]["job"] for one in active]
            return {job: jobs.count(job) for job in sorted(set(jobs))}
        wait(f"after {PATIENCE_S:.0f} s: {'; '.join(wrong)}")


def number(port: int, query: str) -> int:
    """A query's result, once it is above zero. Raises CheckError if that takes too long."""
    wait = patience(PATIENCE_S, POLL_S)
    while True:
        result = ask(port, "query", query=query)["result"]
        if found := int(float(result[0]["value"][1])) if result else 0:
            return found
        wait(f"{query} returns nothing after {PATIENCE_S:.0f} s")


def _rules(port: int) -> int:
    """How many rules were evaluated. Raises CheckError for one that fails."""
    rules = [rule for group in ask(port, "rules")["groups"] for rule in group["rules"]]
    broken = [f"{rule['name']}: {rule['lastError']}" for rule in rules if rule.get("lastError")]
    require(not broken, "; ".join(broken))
    return len(rules)
