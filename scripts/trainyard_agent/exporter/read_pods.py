"""Reads a pod or a PodGroup. All functions raise one of api.MALFORMED, for members write these objects."""

from __future__ import annotations

import sys
from datetime import datetime

from trainyard_agent.exporter import reasons
from trainyard_agent.exporter.model import POD, WORKFLOW, Gang, JobKey, Object, Pod, kind_of
from trainyard_agent.usage import gpu_counts

QUEUE = "scheduling.volcano.sh/queue-name"  # annotation
SUBMITTER = "trainyard.io/submitted-by"  # annotation: who made it
LONGEST = 253  # characters that are kept of texts by members


def word(text: object) -> str:
    """A short text, interned so that it is in memory only once.

    Members write some of them, even owners' names and kinds, which Kubernetes does not check: alerts carry them into
    mails and chats, so characters that can't be printed become question marks.
    """
    short = str(text or "")[:LONGEST]
    return sys.intern(short if short.isprintable() else "".join(one if one.isprintable() else "?" for one in short))


def person(notes: Object) -> str:
    """The submitter according to the annotation. Alerts carry the name into mails and chats, so `word` cleans it."""
    return word(notes.get(SUBMITTER))


def seconds(at: datetime | None) -> float:
    """Seconds since 1970; 0 for None."""
    return at.timestamp() if at else 0.0


def owner(meta: Object) -> JobKey | None:
    """The job that an object was made for: its controller, else its first owner."""
    owners = meta.get("ownerReferences") or []
    found = next((one for one in owners if one.get("controller")), owners[0] if owners else None)
    if not found:
        return None
    group = str(found.get("apiVersion") or "").rpartition("/")[0]
    return JobKey(word(meta["namespace"]), kind_of(group, word(found["kind"])), word(found["name"]))


def pod(obj: Object, gpus: tuple[str, ...]) -> Pod:
    """Reads a pod; `gpus`: resource names of GPUs."""
    meta, status = obj["metadata"], obj.get("status") or {}
    notes, name = meta.get("annotations") or {}, str(meta["name"])
    seen = gpu_counts.any_pod(obj, gpus)
    why = ""
    if not seen.over:
        unplaced = reasons.of_conditions(status.get("conditions"), "PodScheduled", "False", gpus)
        why = reasons.of_containers(status) if seen.node else unplaced
    limit, began = obj["spec"].get("activeDeadlineSeconds"), gpu_counts.time(status.get("startTime"))
    return Pod(
        name=name,
        job=owner(meta) or JobKey(word(meta["namespace"]), POD, name),
        seen=seen,
        phase=word(status.get("phase")),
        queue=word(notes.get(QUEUE)),
        person=person(notes),
        why=why,
        deadline=seconds(began) + float(limit) if limit and began and not seen.over else 0.0,
    )


def gang(obj: Object, gpus: tuple[str, ...]) -> Gang:
    """Reads a PodGroup."""
    status = obj.get("status") or {}
    return Gang(
        seen=gpu_counts.gang(obj, gpus),
        owner=owner(obj["metadata"]),
        phase=word(status.get("phase")) or "Pending",
        least=int((obj.get("spec") or {}).get("minMember") or 0),
        why=reasons.of_conditions(status.get("conditions"), "Unschedulable", "True", gpus),
    )


def of_run(found: Gang) -> bool:
    """Whether the gang is a run's: it has no size, since a run's steps run one after the other."""
    return found.owner is not None and found.owner.kind == WORKFLOW
