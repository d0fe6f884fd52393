"""Reads queues, quotas, claims and nodes. All functions raise one of api.MALFORMED."""

from __future__ import annotations

from trainyard_agent.exporter.model import Claim, Object, Queue, Quota
from trainyard_agent.exporter.read_pods import word
from trainyard_agent.quantity import number, numbers


def queue(obj: Object) -> Queue:
    """Reads a queue."""
    spec, status = obj.get("spec") or {}, obj.get("status") or {}
    given = {
        "guarantee": (spec.get("guarantee") or {}).get("resource"),
        "deserved": spec.get("deserved"),
        "capability": spec.get("capability"),
        "allocated": status.get("allocated"),
    }
    amounts = {what: numbers(listed) for what, listed in given.items()}
    return Queue(
        word(obj["metadata"]["name"]), word(spec.get("parent")), word(status.get("state")) or "Unknown", amounts
    )


def quota(obj: Object) -> Quota:
    """Reads a quota, with its controller's counts."""
    meta, status = obj["metadata"], obj.get("status") or {}
    hard = numbers(status.get("hard") or (obj.get("spec") or {}).get("hard"))
    names = {name: word(name) for name in hard}
    used = numbers(status.get("used"))
    return Quota(
        word(meta["namespace"]),
        word(meta["name"]),
        {names[name]: amount for name, amount in hard.items()},
        {names[name]: used[name] for name in names if name in used},
    )


def claim(obj: Object) -> Claim:
    """Reads a volume claim: its capacity, or its request until it is bound."""
    meta = obj["metadata"]
    has = ((obj.get("status") or {}).get("capacity") or {}).get("storage")
    asks = (((obj.get("spec") or {}).get("resources") or {}).get("requests") or {}).get("storage")
    return Claim(word(meta["namespace"]), word(meta["name"]), number(has or asks))
