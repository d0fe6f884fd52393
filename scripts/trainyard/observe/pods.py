"""Queries on pods: which failed first and why, and what keeps others from starting."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from trainyard.kinds.places import place_of

Object = Mapping[str, Any]
# Reasons in a container's state for not starting.
NEVER = ("InvalidImageName",)  # reasons that no waiting resolves
IMAGE = ("ErrImagePull", "ImagePullBackOff", *NEVER, "ErrImageNeverPull", "RegistryUnavailable")
CONFIG = ("CreateContainerConfigError", "CreateContainerError", "RunContainerError", "StartError")
STUCK = (*IMAGE, *CONFIG)
CRASHING = "CrashLoopBackOff"  # it starts and ends repeatedly
FROM_OUTSIDE = (137, 143)  # exit codes after a signal


@dataclass(frozen=True)
class Failure:
    """A rank that failed. `message`: why its command could not be started; `code` is 1 if no command ended."""

    pod: str
    container: str
    rank: str
    why: str
    message: str = ""
    code: int = 1
    thrown_off: bool = False  # evicted, or ended by the pod's deadline


def containers(pod: Object) -> list[Object]:
    """Statuses of all containers of a pod, init containers first."""
    status = pod.get("status") or {}
    return [*(status.get("initContainerStatuses") or []), *(status.get("containerStatuses") or [])]


def state(container: Object, kind: str, *, last: bool = False) -> Object:
    """The `waiting`, `running` or `terminated` part of a container's (last) state; {} if it is missing."""
    found: Object = (container.get("lastState" if last else "state") or {}).get(kind) or {}
    return found


def condition(item: Object, kind: str) -> Object:
    """Condition of an object's status by type; {} if it is missing."""
    for entry in (item.get("status") or {}).get("conditions") or []:
        if entry.get("type") == kind:
            found: Object = entry
            return found
    return {}


def phase(pod: Object) -> str:
    """Phase of a pod; "" before it has one."""
    return str((pod.get("status") or {}).get("phase") or "")


def main_container(pod: Object) -> str:
    """Name of the container that trains."""
    return str(pod["spec"]["containers"][0]["name"])


def failures(pods: Iterable[Object]) -> list[Failure]:
    """Containers that ended with an error and pods that were evicted, in order of time.

    Containers that were ended by a signal come last: they are consequences of another failure.
    """
    found: list[tuple[bool, str, Failure]] = []
    for pod in pods:
        rank, name = place_of(pod)[2], pod["metadata"]["name"]
        status, codes = pod.get("status") or {}, []
        for entry in containers(pod):
            ended = state(entry, "terminated") or state(entry, "terminated", last=True)
            if code := int(ended.get("exitCode") or 0):
                reason = str(ended.get("reason") or "")
                why = f"exit code {code}" + (f", {reason}" if reason not in ("", "Error") else "")
                failure = Failure(name, entry.get("name", ""), rank, why, not_started(ended), code)
                outside = code in FROM_OUTSIDE and reason != "OOMKilled"
                found.append((outside, str(ended.get("finishedAt") or "9"), failure))
                codes.append(code)
        if phase(pod) == "Failed" and status.get("reason"):
            why = f"{status['reason']}: {status.get('message', '')}".rstrip(": ")
            failure = Failure(name, main_container(pod), rank, why, code=max(codes, default=1), thrown_off=True)
            found.append((False, "8", failure))
    return [failure for _, _, failure in sorted(found, key=lambda entry: entry[:2])]


def first_failure(pods: Iterable[Object]) -> Failure | None:
    """The first failure; None if nothing failed."""
    return next(iter(failures(pods)), None)


def not_started(ended: Object) -> str:
    """Why the runtime could not start a command that "ended"; "" if it was started."""
    if ended.get("reason") not in ("StartError", "ContainerCannotRun"):
        return ""
    return " ".join(str(ended.get("message", "")).rpartition("unable to start container process: ")[2].split())


def running(pods: Iterable[Object]) -> int:
    """Number of pods that run or have run."""
    return sum(phase(pod) in ("Running", "Succeeded", "Failed") for pod in pods)


def starts(pod: Object, container: str) -> int:
    """Number of times that the container has started: 0 if it has no log yet."""
    for one in containers(pod):
        if one.get("name") == container and (state(one, "terminated") or "running" in (one.get("state") or {})):
            return int(one.get("restartCount", 0)) + 1
    return 0


def unplaced(pod: Object) -> Object:
    """The scheduler's condition of a pod without a node; {} if there is none."""
    found = condition(pod, "PodScheduled")
    return found if found.get("status") == "False" else {}


def waits_for(pods: Iterable[Object]) -> str:
    """Why the first of the waiting pods has no node yet; "" if none waits."""
    strings = (" ".join(str(unplaced(pod).get("message", "")).split()) for pod in pods)
    return next(filter(None, strings), "")


def blocked(pod: Object, *reasons: str) -> tuple[str, str, Object] | None:
    """(reason, message, status) of a container that waits for one of these reasons, by default those in `STUCK`."""
    for one in containers(pod):
        waiting = state(one, "waiting")
        if waiting.get("reason") in (reasons or STUCK):
            return str(waiting["reason"]), " ".join(str(waiting.get("message") or "").split()), one
    return None


def stuck(pods: Iterable[Object]) -> tuple[str, bool]:
    """(why a container can't start, whether waiting is useless), or ("", False)."""
    for pod in pods:
        if found := blocked(pod):
            reason, message, _ = found
            return f"{place_of(pod)[2]}: {reason}: {message}".rstrip(": "), reason in NEVER
    return "", False
