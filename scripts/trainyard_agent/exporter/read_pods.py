"""A pod or a PodGroup of the API to what is kept of it. All raise one of api.MALFORMED: members write them."""

from __future__ import annotations

import sys
from datetime import datetime

from trainyard_agent.exporter import reasons
from trainyard_agent.exporter.model import POD, WORKFLOW, Gang, JobKey, Object, Pod, kind_of
from trainyard_agent.usage import gpu_counts

QUEUE = "scheduling.volcano.sh/queue-name"  # annotation
SUBMITTER = "trainyard.io/submitted-by"  # annotation: who made it
LONGEST = 253  # characters that are kept of what members write


def word(text: object) -> str:
    """A short text, once in memory however often it comes.

    Members write some of them, owners' names and kinds too, which Kubernetes does not look at: alerts carry them into
    mails and chats, so what can't be printed becomes a question mark.
    """
    short = str(text or "")[:LONGEST]
    return sys.intern(short if short.isprintable() else "".join(one if one.isprintable() else "?" for one in short))


def person(notes: Object) -> str:
    """Who made it, as its note says. Alerts carry it into mails and chats: only what can be printed is taken."""
    return word(notes.get(SUBMITTER))


def seconds(at: datetime | None) -> float:
    """Since 1970; 0 for none."""
    return at.timestamp() if at else 0.0


def owner(meta: Object) -> JobKey | None:
    """What an object was made for: its controller, else the first owner there is."""
    owners = meta.get("ownerReferences") or []
    found = next((one for one in owners if one.get("controller")), owners[0] if owners else None)
    if not found:
        return None
    group = str(found.get("apiVersion") or "").rpartition("/")[0]
    return JobKey(word(meta["namespace"]), kind_of(group, word(found["kind"])), word(found["name"]))


def pod(obj: Object, gpus: tuple[str, ...]) -> Pod:
    """A pod; `gpus`: what a GPU is called."""
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
    """A PodGroup."""
    status = obj.get("status") or {}
    return Gang(
        seen=gpu_counts.gang(obj, gpus),
        owner=owner(obj["metadata"]),
        phase=word(status.get("phase")) or "Pending",
        least=int((obj.get("spec") or {}).get("minMember") or 0),
        why=reasons.of_conditions(status.get("conditions"), "Unschedulable", "True", gpus),
    )


def of_run(found: Gang) -> bool:
    """Whether the gang is a run's: it has no size, since steps come one after the other."""
    return found.owner is not None and found.owner.kind == WORKFLOW
