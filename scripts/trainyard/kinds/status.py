"""State of a job from its own object, for every kind of job."""

from typing import Any

from trainyard.kinds import registry
from trainyard.names import QUEUE

Object = dict[str, Any]
RUNNING, SUCCEEDED, FAILED, STOPPED = "running", "succeeded", "failed", "stopped"


def entry(manifest: Object) -> registry.Kind:
    """The registry's entry of a job. Raises KeyError if the object isn't a job."""
    found = registry.of_object(manifest)
    if found is None:
        raise KeyError(f"{manifest.get('apiVersion')} {manifest.get('kind')}")
    return found


def plural(manifest: Object) -> str:
    """Name of the job's resource in API paths."""
    return entry(manifest).plural


def first_pod(manifest: Object) -> str:
    """Name of the pod whose log to show: rank 0's, or the launcher's; "" for a plain Job (random name)."""
    kind = entry(manifest)
    roles = (manifest.get("spec") or {}).get(kind.replicas) or {}
    lead = "-worker-0" if roles and kind.single == "Master" and "Master" not in roles else kind.lead
    return f"{manifest['metadata']['name']}{lead}" if lead else ""


def least(job: Object) -> int:
    """Minimum number of pods of an elastic job; 0 for a job that needs all of its pods."""
    policy = (job.get("spec") or {}).get("elasticPolicy") or {}
    return int(policy.get("minReplicas") or 0)


def container(manifest: Object) -> str:
    """Name of the container that runs the command."""
    return entry(manifest).container


def outcome(job: Object) -> tuple[str, str]:
    """(running | succeeded | failed | stopped, the controller's message)."""
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
    return (STOPPED if stopped(job) else RUNNING), ""


def stop_of(kind: registry.Kind) -> Object | None:
    """The patch that ends a job's pods and keeps the job; None if the kind can't be stopped."""
    if not kind.suspend:
        return None
    change: Any = True
    for key in reversed(kind.suspend.split(".")):
        change = {key: change}
    return {"spec": change}


def stopped(job: Object) -> bool:
    """Whether the job is stopped."""
    kind = registry.of_object(job)
    found: Any = job.get("spec") or {}
    for key in kind.suspend.split(".") if kind else [""]:
        found = (found or {}).get(key)
    return found is True


def queue_of(job: Object) -> str:
    """The queue that the job names, or ""."""
    spec = job.get("spec") or {}
    gang = (spec.get("runPolicy") or {}).get("schedulingPolicy") or {}
    pod = ((spec.get("template") or {}).get("metadata") or {}).get("annotations") or {}
    return str(gang.get("queue") or spec.get("queue") or pod.get(QUEUE) or "")


def priority_of(job: Object) -> str:
    """The priority class that the job names, or ""."""
    spec = job.get("spec") or {}
    gang = (spec.get("runPolicy") or {}).get("schedulingPolicy") or {}
    pod = (spec.get("template") or {}).get("spec") or {}
    return str(gang.get("priorityClass") or spec.get("priorityClassName") or pod.get("priorityClassName") or "")


def started(job: Object) -> str:
    """Start time of the job, as Kubernetes writes times; "" if unknown."""
    return str((job.get("status") or {}).get("startTime") or job["metadata"].get("creationTimestamp") or "")


def finished(job: Object) -> str:
    """End time of the job; "" while it runs."""
    status = job.get("status") or {}
    if outcome(job)[0] == RUNNING:
        return ""
    current = [one for one in status.get("conditions") or [] if one.get("status") == "True"]
    last = current[-1] if current else status.get("state") or {}
    return str(status.get("completionTime") or last.get("lastTransitionTime") or "")
