"""A gang that doesn't fit gets nothing at all."""

from __future__ import annotations

import copy
import json
import time
from typing import Any

from trainyard.names import GPU
from trainyard.pipelines.local.dataset import Dataset
from trainyard_dev.e2e import jobs
from trainyard_dev.e2e.checks.training import KINDS, manifest
from trainyard_dev.e2e.context import NAMESPACE, Context
from trainyard_dev.e2e.recorder import had, require
from trainyard_dev.report.phases import job_spans

WATCH_S = 12
TOO_LARGE = "too-large"


def refused(context: Context, dataset: Dataset) -> None:
    """One GPU more than the cluster has: no member is placed, zero GPUs are held, the PodGroup says why."""
    with context.recorder.check("gang.refused", "a gang larger than the cluster holds zero GPUs") as figures:
        capacity = sum(_allocatable(context).values())
        workers = capacity  # with the master: one more than there are GPUs
        job = too_large(context, dataset)
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
            status = had(group, "no PodGroup was made for the gang")["status"]
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


def too_large(context: Context, dataset: Dataset) -> dict[str, Any]:
    """A PyTorchJob of one GPU more than the cluster has."""
    job = copy.deepcopy(manifest(KINDS[0], dataset))
    workers = sum(_allocatable(context).values())
    job["metadata"]["name"] = TOO_LARGE
    job["metadata"]["labels"]["app.kubernetes.io/name"] = TOO_LARGE
    spec = job["spec"]
    spec["runPolicy"]["schedulingPolicy"]["minAvailable"] = workers + 1
    spec["pytorchReplicaSpecs"]["Worker"]["replicas"] = workers
    for replica in spec["pytorchReplicaSpecs"].values():
        replica["template"]["metadata"]["labels"]["app.kubernetes.io/name"] = TOO_LARGE
        replica["template"]["spec"].pop("topologySpreadConstraints", None)  # only the number shall not fit
    return job


def _allocatable(context: Context) -> dict[str, int]:
    return {n["metadata"]["name"]: int(n["status"]["allocatable"].get(GPU, 0)) for n in context.kubectl.get("nodes")}
