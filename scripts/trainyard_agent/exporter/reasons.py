"""Why a job waits, in one word, out of what the scheduler and kubelet say.

`trainyard jobs` shows their sentences; a series' label has to be one of a few words.
"""

from __future__ import annotations

from typing import Any

QUOTA, QUEUE, GPUS, NODES, GANG, IMAGE, OTHER = "quota", "queue", "gpus", "nodes", "gang", "image", "other"
# Why a container doesn't start, as its state says: those of scripts/trainyard/observe/pods.py, which a test compares.
NO_IMAGE = ("ErrImagePull", "ImagePullBackOff", "InvalidImageName", "ErrImageNeverPull", "RegistryUnavailable")
ORIGIN = "Origin reason is "
LONGEST = 4000  # characters of a message that are looked at


def of_message(message: str, gpus: tuple[str, ...]) -> str:
    """The reason in the scheduler's words; "" where it says nothing. `gpus`: what a GPU is called."""
    said = message[-LONGEST:].rsplit(ORIGIN, 1)[-1]
    if not said.strip():
        return ""
    low = said.lower()
    if any(f"Insufficient {resource}" in said for resource in gpus):
        return GPUS
    # Before the words that follow, since names of pods are in it as well.
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
    """The reason in the last condition of this type that has this status; "" where there is none."""
    for one in reversed(conditions or []):
        if one.get("type") == kind and one.get("status") == status:
            return of_message(str(one.get("message") or ""), gpus) or OTHER
    return ""


def of_containers(status: Any) -> str:
    """`image` or `other` where a container of a pod can't start; "" where none is held up."""
    for one in [*(status.get("initContainerStatuses") or []), *(status.get("containerStatuses") or [])]:
        reason = ((one.get("state") or {}).get("waiting") or {}).get("reason") or ""
        if reason in NO_IMAGE:
            return IMAGE
        if reason not in ("", "PodInitializing", "ContainerCreating"):
            return OTHER
    return ""
