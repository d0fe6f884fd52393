"""Jobs that don't fit wait: a gang gets nothing at all, and with StrictFIFO nothing overtakes a queue's first job."""

import copy
import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from trainyard.names import GPU
from trainyard_dev.e2e import jobs
from trainyard_dev.e2e.checks.training import KINDS, manifest
from trainyard_dev.e2e.context import NAMESPACE, SYSTEM, Context
from trainyard_dev.e2e.entry import GPUS, UPGRADES, check
from trainyard_dev.e2e.recorder import Figures, had, possible, require
from trainyard_dev.e2e.releases import changed
from trainyard_dev.report.phases import job_spans

WATCH_S = 12
TOO_LARGE = "too-large"
STRICT = "global.contract.scheduler.queueingStrategy=StrictFIFO"
WAITS_S = 10  # several rounds of the scheduler
STARTS_S = 60
HEAD, LATE = "turn-head", "turn-late"


@check("gang.refused", title="a gang larger than the cluster holds no GPUs", main=True, shares={GPUS},
       inputs=("charts/trainyard/templates", "charts/volcano"))  # fmt: skip
def refused(context: Context, figures: Figures) -> None:
    """One GPU more than the cluster has: no member is placed, zero GPUs are held, the PodGroup has the reason."""
    capacity = sum(_allocatable(context).values())
    workers = capacity  # with the master: one more than the GPUs
    job = too_large(context)
    figures |= {"gpus_in_cluster": capacity, "gpus_asked": workers + 1, "watched_seconds": WATCH_S}
    trace = jobs.Trace(TOO_LARGE)
    context.kubectl("apply", "-n", NAMESPACE, "-f", "-", input=json.dumps(job))
    try:
        end, held = time.monotonic() + WATCH_S, 0
        while time.monotonic() < end:
            jobs.poll(context, trace, job, NAMESPACE)
            held = max(held, sum(jobs.gpus(trace.pods[name]) for name in trace.nodes()))
            time.sleep(jobs.POLL_S)
        group = trace.group or next((g for g in trace.groups.values() if g["metadata"]["name"] == TOO_LARGE), None)
        status = had(group, "the gang has no PodGroup")["status"]
        figures["gpus_held"] = held
        figures["pods_created"] = len(trace.pods)
        figures["podgroup_phase"] = status.get("phase")
        reasons = [c.get("message", "") for c in status.get("conditions", []) if c["type"] == "Unschedulable"]
        figures["scheduler_says"] = reasons[-1] if reasons else ""
        require(held == 0, f"an incomplete gang held {held} GPUs")
        require(figures["podgroup_phase"] in ("Pending", "Inqueue"), f"the PodGroup is {figures['podgroup_phase']}")
    finally:
        pods = list(trace.pods.values())
        context.recorder.spans += job_spans("gang.refused", pods, podgroup=trace.group, until=time.time())
        jobs.delete(context, job, NAMESPACE)


def too_large(context: Context) -> dict[str, Any]:
    """A PyTorchJob of one GPU more than the cluster has."""
    job = copy.deepcopy(manifest(KINDS[0], context.dataset))
    workers = sum(_allocatable(context).values())
    job["metadata"]["name"] = TOO_LARGE
    job["metadata"]["labels"]["app.kubernetes.io/name"] = TOO_LARGE
    spec = job["spec"]
    spec["runPolicy"]["schedulingPolicy"]["minAvailable"] = workers + 1
    spec["pytorchReplicaSpecs"]["Worker"]["replicas"] = workers
    for replica in spec["pytorchReplicaSpecs"].values():
        replica["template"]["metadata"]["labels"]["app.kubernetes.io/name"] = TOO_LARGE
        replica["template"]["spec"].pop("topologySpreadConstraints", None)  # only the number must not fit
    return job


def _allocatable(context: Context) -> dict[str, int]:
    return {n["metadata"]["name"]: int(n["status"]["allocatable"].get(GPU, 0)) for n in context.kubectl.get("nodes")}


@check("queues.strict", title="queueingStrategy StrictFIFO: a small pod does not overtake a large pod that came first",
       locks={GPUS}, shares={UPGRADES},
       inputs=("charts/trainyard/templates", "charts/volcano", "scripts/trainyard_agent"))  # fmt: skip
def strict(context: Context, figures: Figures) -> None:
    """By default the small pod behind starts; after an upgrade to StrictFIFO it waits for the first."""
    most = max(context.gpus.values())
    possible(most >= 2, "it needs a node with two GPUs")
    with _line(context, most):
        require(_starts(context, LATE), "with BestEffortFIFO the second pod should have started")
    with changed(context, STRICT) as figures["upgrade_seconds"]:
        scheduler = context.kubectl.get("pods", "-n", SYSTEM, "-l", "app=volcano-scheduler")
        names = {one["name"] for pod in scheduler for one in pod["spec"]["containers"]}
        require("queue-gate" in names, f"the scheduler's pod has the containers {sorted(names)}")
        with _line(context, most) as holders:
            figures["watched_seconds"] = WAITS_S
            require(not _starts(context, LATE, WAITS_S), "the second pod overtook the first pod of its queue")
            context.end_pods(*holders, check=True)
            require(_starts(context, HEAD), "the first pod of the queue does not start although it fits")
            require(_starts(context, LATE), "the second pod does not start after the first")


@contextmanager
def _line(context: Context, most: int) -> Iterator[list[str]]:
    """A holder takes one GPU of each node; then come a pod that needs a whole node, and one that needs one GPU."""
    holders = {f"turn-holder-{number}": node for number, node in enumerate(n for n, has in context.gpus.items() if has)}
    try:
        for name, node in holders.items():
            _create(context, name, 1, node)
        for name in holders:
            require(_starts(context, name), f"{name} does not start")
        _create(context, HEAD, most)
        require(not _starts(context, HEAD, WAITS_S / 2), "the large pod started although it fits on no node")
        _create(context, LATE, 1)
        yield list(holders)
    finally:
        context.end_pods(*holders, HEAD, LATE, check=True)


def _create(context: Context, name: str, gpus: int, node: str | None = None) -> None:
    pod = context.pod(name, "sleep 300", node=node, queue=NAMESPACE)
    for quantities in pod["spec"]["containers"][0]["resources"].values():
        quantities[GPU] = str(gpus)
    context.kubectl.apply([pod], NAMESPACE)


def _starts(context: Context, name: str, seconds: float = STARTS_S) -> bool:
    """Whether the pod gets a node in this time."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if context.placed(name):
            return True
        time.sleep(1)
    return False
