"""What a job's own object says of it, and where to look for its pods; for every kind of job."""

from __future__ import annotations

from typing import Any

Object = dict[str, Any]
PLURALS = {"PyTorchJob": "pytorchjobs", "TFJob": "tfjobs", "MPIJob": "mpijobs", "Job": "jobs"}
FIRST = {"PyTorchJob": "-master-0", "TFJob": "-chief-0", "MPIJob": "-launcher"}
RUNNING, SUCCEEDED, FAILED = "running", "succeeded", "failed"


def plural(manifest: Object) -> str:
    """The resource's name in the API's paths."""
    return PLURALS[manifest["kind"]]


def first_pod(manifest: Object) -> str:
    """The pod whose log tells the job's story: rank 0's, or the launcher's; "" for a plain Job (random name)."""
    name = manifest["metadata"]["name"]
    if manifest["apiVersion"].startswith("batch.volcano.sh/"):
        return f"{name}-master-0"
    return f"{name}{FIRST[manifest['kind']]}" if manifest["kind"] in FIRST else ""


def container(manifest: Object) -> str:
    """The container that runs the command."""
    return {"PyTorchJob": "pytorch", "TFJob": "tensorflow", "MPIJob": "mpi"}.get(manifest["kind"], "main")


def outcome(job: Object) -> tuple[str, str]:
    """(running | succeeded | failed, what the controller says of it)."""
    status = job.get("status") or {}
    state = status.get("state") or {}
    if state.get("phase") == "Completed":
        return SUCCEEDED, ""
    if state.get("phase") in ("Failed", "Aborted", "Terminated"):
        return FAILED, state.get("message") or state["phase"].lower()
    for condition in status.get("conditions") or []:
        if condition.get("status") != "True":
            continue
        if condition["type"] in ("Succeeded", "Complete"):
            return SUCCEEDED, ""
        if condition["type"] == "Failed":
            return FAILED, condition.get("message") or "the controller gives no reason"
    return RUNNING, ""
