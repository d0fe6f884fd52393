"""Queues of the release, a tree below Volcano's root: parents are made before their children and removed after them."""

from __future__ import annotations

import time
from typing import Any

from trainyard_agent.api import Api, ApiError, delete, needed
from trainyard_agent.clock import Clock
from trainyard_agent.say import PlatformError, say

MANAGER = "trainyard-setup"
QUEUES = "/apis/scheduling.volcano.sh/v1beta1/queues"
PODGROUPS = "/apis/scheduling.volcano.sh/v1beta1/podgroups"
DENIED = "denied the request"
# Volcano's webhook reads queues from a cache that may not have the parent yet.
UNKNOWN_PARENT = ("failed to get parent queue", "parent queue")
IDLE_PASSES = 4  # passes without progress after which a refusal is final; the cache lags by fewer
EMPTY_SECONDS = 30.0  # seconds that a queue whose last job has just gone has to become empty


class RefusedError(Exception):
    """Volcano's admission refused a queue on the merits."""


def apply(api: Api, obj: dict[str, Any]) -> str:
    """Apply one queue; "" or why not yet. Raises RefusedError on the merits, PlatformError if it can never succeed."""
    name = obj["metadata"]["name"]
    try:
        api.apply(f"{QUEUES}/{name}", obj, manager=MANAGER)
    except ApiError as error:
        if DENIED in error.message:
            said = error.message.split(DENIED, 1)[1].lstrip(": ")
            if said.startswith(UNKNOWN_PARENT) and "not found" in said:
                return said
            raise RefusedError(said) from error
        if error.status in (400, 422):
            raise PlatformError(f"queue {name} is refused: {error.message}") from error
        # An absent webhook answers 500 (or 503, 404, 0).
        return error.message
    return ""


def apply_all(api: Api, objects: list[dict[str, Any]], clock: Clock) -> list[dict[str, Any]]:
    """Apply every queue, repeatedly while their order requires it; returns those that Volcano refuses on the merits.

    Shares of siblings and of parent and child depend on each other, so that a queue may be refused until another one
    has changed, or is gone. Raises PlatformError when Volcano's admission does not answer in time.
    """
    waiting, idle, pause, said = list(objects), 0, 0.3, ""
    while waiting:
        left, refused, reason = [], 0, ""
        for obj in waiting:
            try:
                not_yet = apply(api, obj)
            except RefusedError as refusal:
                not_yet, refused = str(refusal), refused + 1
            if not_yet:
                left.append(obj)
                reason = reason or f"queue {obj['metadata']['name']} waits: {not_yet}"
            else:
                say(f"queue {obj['metadata']['name']} applied")
        idle = idle + 1 if len(left) == len(waiting) else 0
        waiting = left
        if not waiting or (refused == len(waiting) and idle >= IDLE_PASSES):
            break
        if reason != said:
            say(reason)
            said = reason
        if time.monotonic() > clock.end:
            raise PlatformError(f"gave up waiting for Volcano's admission: {reason}")
        time.sleep(pause)
        pause = min(pause * 1.5, 2.0)
    return waiting


def must_apply(api: Api, objects: list[dict[str, Any]], clock: Clock) -> None:
    """Like apply_all, but a refusal is an error. Raises PlatformError with Volcano's message about each."""
    refusals = []
    for obj in apply_all(api, objects, clock):
        try:
            apply(api, obj)
        except RefusedError as refusal:
            refusals.append(f"queue {obj['metadata']['name']}: {refusal}")
    if refusals:
        raise PlatformError("Volcano refuses " + "; ".join(refusals))


def _items(api: Api, path: str, label: str = "") -> list[dict[str, Any]]:
    with needed(f"{path.rsplit('/', 1)[1]} can't be listed"):
        return api.get(path, {"labelSelector": label} if label else None).get("items", [])


def prune(api: Api, label: str, keep: set[str], clock: Clock) -> None:
    """Delete queues with our label that are no longer wanted, each once it is empty and has no children.

    A queue still in use is reported and left to the next upgrade: its jobs run on, and new ones may still come.
    """
    end = min(clock.end, time.monotonic() + EMPTY_SECONDS)
    while True:
        queues = _items(api, QUEUES, label)
        parents = {queue.get("spec", {}).get("parent") for queue in queues}
        stale = [queue["metadata"]["name"] for queue in queues if queue["metadata"]["name"] not in keep]
        if not stale:
            return
        users: dict[str, list[str]] = {}
        for group in _items(api, PODGROUPS):
            if group.get("status", {}).get("phase") != "Completed":
                meta = group["metadata"]
                users.setdefault(group["spec"].get("queue", ""), []).append(f"{meta['namespace']}/{meta['name']}")
        reasons = {}
        for name in stale:
            if name in parents:
                reasons[name] = "it has queues below it"
            elif name in users:
                reasons[name] = f"{len(users[name])} jobs are in it, {users[name][0]} among them"
            elif said := delete(api, f"{QUEUES}/{name}"):
                reasons[name] = said  # Volcano's message
            else:
                say(f"queue {name} removed: it is gone from the values")
        if not reasons:
            return
        if time.monotonic() > end:
            for name, reason in reasons.items():
                say(f"queue {name} stays until the next upgrade: {reason}")
            return
        time.sleep(0.5)
