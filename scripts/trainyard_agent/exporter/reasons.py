"""Why a job waits, in one word, derived from the messages of scheduler and kubelet.

`trainyard jobs` shows the full messages; a series' label must be one of a few words.
"""

from __future__ import annotations

from typing import Any

QUOTA, QUEUE, GPUS, NODES, GANG, IMAGE, OTHER = "quota", "queue", "gpus", "nodes", "gang", "image", "other"
# Reasons why a container doesn't start: the same as in scripts/trainyard/observe/pods.py; a test compares them.
NO_IMAGE = ("ErrImagePull", "ImagePullBackOff", "InvalidImageName", "ErrImageNeverPull", "RegistryUnavailable")
ORIGIN = "Origin reason is "
LONGEST = 4000  # characters of a message that are searched


def of_message(message: str, gpus: tuple[str, ...]) -> str:
    """The reason in the scheduler's message; "" for an empty message. `gpus`: resource names of GPUs."""
    said = message[-LONGEST:].rsplit(ORIGIN, 1)[-1]
    if not said.strip():
        return ""
    low = said.lower()
    if any(f"Insufficient {resource}" in said for resource in gpus):
        return GPUS
    # Before the words that follow, since this message contains pods' names, too.
    if "nodes are " in low or "node(s)" in low or "Insufficient " in said:
        return NODES
    if "queue" in low or "overused" in low:
        return QUEUE
    if "quota" in low:
        return QUOTA
    if "gang" in low or "not ready" in low or "minavailable" in low:
        return GANG
    return OTHER


def of_conditions(conditions: Any, kind: str, status: str, gpus: tuple[str, ...]) -> str:
    """The reason in the last condition of this type and status; "" without such a condition."""
    for one in reversed(conditions or []):
        if one.get("type") == kind and one.get("status") == status:
            return of_message(str(one.get("message") or ""), gpus) or OTHER
    return ""


def of_containers(status: Any) -> str:
    """`image` or `other` if a container of the pod can't start; "" if all can."""
    for one in [*(status.get("initContainerStatuses") or []), *(status.get("containerStatuses") or [])]:
        reason = ((one.get("state") or {}).get("waiting") or {}).get("reason") or ""
        if reason in NO_IMAGE:
            return IMAGE
        if reason not in ("", "PodInitializing", "ContainerCreating"):
            return OTHER
    return ""
