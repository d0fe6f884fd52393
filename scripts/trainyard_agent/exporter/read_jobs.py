"""Reads a job of any kind. All functions raise one of api.MALFORMED, for members write these objects.

A job's state is read as the janitor reads it, which removes claims by the same rules.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from trainyard_agent.exporter.model import FAILED, RUNNING, STOPPED, SUCCEEDED, Job, JobKey, Object, Role, Run, kind_of
from trainyard_agent.exporter.read_pods import QUEUE, person, seconds, word
from trainyard_agent.quantity import numbers
from trainyard_agent.runs import janitor
from trainyard_agent.usage import gpu_counts

RUN, PIPELINE = janitor.RUN, "trainyard.io/pipeline"  # labels
SCHEDULE = "workflows.argoproj.io/cron-workflow"  # label
MOST = 100_000  # pods of a role; a larger number is a typo


def job(obj: Object, gpus: tuple[str, ...]) -> Job:
    """Reads a job; `gpus`: resource names of GPUs."""
    meta, spec, status = obj["metadata"], obj.get("spec") or {}, obj.get("status") or {}
    labels, notes = meta.get("labels") or {}, meta.get("annotations") or {}
    policy = spec.get("runPolicy") or {}
    group = str(obj.get("apiVersion") or "").rpartition("/")[0]
    limit = policy.get("activeDeadlineSeconds") or spec.get("activeDeadlineSeconds")
    began = gpu_counts.time(status.get("startTime") or status.get("startedAt"))
    state = _state(obj)
    return Job(
        key=JobKey(word(meta["namespace"]), kind_of(group, word(obj["kind"])), word(meta["name"])),
        state=state,
        queue=_queue(spec, notes),
        person=person(notes),
        run=word(labels.get(RUN)),
        created=seconds(gpu_counts.time(meta.get("creationTimestamp"))),
        deadline=seconds(began) + float(limit) if limit and began and state == RUNNING else 0.0,
        least=_least(spec),
        begun=status.get("phase") == "Running",
        roles=tuple(_roles(spec, gpus)),
    )


def run(obj: Object, gpus: tuple[str, ...]) -> Run:
    """Reads a Workflow."""
    meta, status = obj["metadata"], obj.get("status") or {}
    labels, phase = meta.get("labels") or {}, status.get("phase")
    began, ended = gpu_counts.time(status.get("startedAt")), gpu_counts.time(status.get("finishedAt"))
    outcome = {"Succeeded": SUCCEEDED, "Failed": FAILED, "Error": "error"}.get(str(phase), "")
    if outcome and outcome != SUCCEEDED and (obj.get("spec") or {}).get("shutdown"):
        outcome = STOPPED
    return Run(
        job=job(obj, gpus),
        uid=str(meta["uid"]),
        pipeline=word(labels.get(PIPELINE) or labels.get(SCHEDULE)),
        outcome=outcome,
        ended=seconds(ended),
        seconds=max(0.0, seconds(ended) - seconds(began)) if began and ended else 0.0,
    )


def _state(obj: Object) -> str:
    status, spec = obj.get("status") or {}, obj.get("spec") or {}
    if janitor.read(obj).finished:
        state = status.get("state")
        if isinstance(state, dict):
            return SUCCEEDED if state.get("phase") == "Completed" else FAILED
        if status.get("phase"):
            return SUCCEEDED if status["phase"] == "Succeeded" else FAILED
        ends = [one.get("type") for one in status.get("conditions") or [] if one.get("status") == "True"]
        return FAILED if "Failed" in ends else SUCCEEDED
    stopped = spec.get("suspend") is True or (spec.get("runPolicy") or {}).get("suspend") is True
    return STOPPED if stopped else RUNNING


def _least(spec: Object) -> int:
    """Pods with which a job runs, from where elastic jobs, Volcano and training-operator have it; 0: all of them."""
    elastic, gang = spec.get("elasticPolicy") or {}, (spec.get("runPolicy") or {}).get("schedulingPolicy") or {}
    return max(0, int(elastic.get("minReplicas") or spec.get("minAvailable") or gang.get("minAvailable") or 0))


def _queue(spec: Object, notes: Object) -> str:
    """The queue that a job names, from where training-operator, Volcano and Kubernetes have it."""
    gang = (spec.get("runPolicy") or {}).get("schedulingPolicy") or {}
    template = ((spec.get("template") or {}).get("metadata") or {}).get("annotations") or {}
    pods = (spec.get("podMetadata") or {}).get("annotations") or {}
    return word(gang.get("queue") or spec.get("queue") or template.get(QUEUE) or pods.get(QUEUE) or notes.get(QUEUE))


def _roles(spec: Object, gpus: tuple[str, ...]) -> Iterator[Role]:
    for key, value in spec.items():
        if key.endswith("ReplicaSpecs") and isinstance(value, dict):
            for role in value.values():
                yield _role(role.get("replicas", 1), role.get("template"), gpus)
    tasks = spec.get("tasks")
    for task in tasks if isinstance(tasks, list) else []:
        yield _role(task.get("replicas", 1), task.get("template"), gpus)
    if isinstance(spec.get("template"), dict):
        yield _role(spec.get("parallelism", 1), spec["template"], gpus)


def _role(count: Any, template: Any, gpus: tuple[str, ...]) -> Role:
    spec = (template or {}).get("spec") or {}
    pods = min(MOST, max(0, int(1 if count is None else count)))
    return Role(pods, sum(gpu_counts.asks(spec, one) for one in gpus), _asks(spec))


def _asks(spec: Object) -> dict[str, float]:
    """What one pod counts for in a quota, by the quota's resource names; init containers are left out."""
    found: dict[str, float] = {"pods": 1.0, "count/pods": 1.0}
    for container in spec.get("containers") or []:
        given = container.get("resources") or {}
        limits = numbers(given.get("limits"))
        for name, amount in {**limits, **numbers(given.get("requests"))}.items():
            keys = (
                (f"requests.{name}", name) if name in ("cpu", "memory", "ephemeral-storage") else (f"requests.{name}",)
            )
            for key in keys:
                found[word(key)] = found.get(key, 0.0) + amount
        for name, amount in limits.items():
            found[word(f"limits.{name}")] = found.get(f"limits.{name}", 0.0) + amount
    return found
