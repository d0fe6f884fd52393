"""Queues, quotas, claims and nodes to what is kept of them. All raise one of api.MALFORMED."""

from __future__ import annotations

from trainyard_agent.exporter.model import Claim, Object, Queue, Quota
from trainyard_agent.exporter.read_pods import word
from trainyard_agent.quantity import number, numbers


def queue(obj: Object) -> Queue:
    """A queue."""
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
    """A quota, as its controller has counted it."""
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
    """A volume claim: what it has, or asks for as long as it has nothing."""
    meta = obj["metadata"]
    has = ((obj.get("status") or {}).get("capacity") or {}).get("storage")
    asks = (((obj.get("spec") or {}).get("resources") or {}).get("requests") or {}).get("storage")
    return Claim(word(meta["namespace"]), word(meta["name"]), number(has or asks))
