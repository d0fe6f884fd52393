"""What pods say: which failed first and why, and what keeps others from starting."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from trainyard.kinds.places import place_of

Object = Mapping[str, Any]
# Why a container doesn't start, as its state says.
NEVER = ("InvalidImageName",)  # however long one waits
IMAGE = ("ErrImagePull", "ImagePullBackOff", *NEVER, "ErrImageNeverPull", "RegistryUnavailable")
CONFIG = ("CreateContainerConfigError", "CreateContainerError", "RunContainerError", "StartError")
STUCK = (*IMAGE, *CONFIG)
CRASHING = "CrashLoopBackOff"  # it started, and ended, again and again
FROM_OUTSIDE = (137, 143)  # exit codes of what was ended by a signal


@dataclass(frozen=True)
class Failure:
    """A rank that failed. `message`: why its command could not even be started; `code` is 1 where no command ended."""

    pod: str
    container: str
    rank: str
    why: str
    message: str = ""
    code: int = 1
    thrown_off: bool = False  # its node, or its pod's deadline


def containers(pod: Object) -> list[Object]:
    """The statuses of all containers of a pod, init containers first."""
    status = pod.get("status") or {}
    return [*(status.get("initContainerStatuses") or []), *(status.get("containerStatuses") or [])]


def state(container: Object, kind: str, *, last: bool = False) -> Object:
    """The `waiting`, `running` or `terminated` part of a container's (last) state; empty if it isn't there."""
    found: Object = (container.get("lastState" if last else "state") or {}).get(kind) or {}
    return found


def condition(item: Object, kind: str) -> Object:
    """A condition of an object's status by type; empty when it isn't there."""
    for entry in (item.get("status") or {}).get("conditions") or []:
        if entry.get("type") == kind:
            found: Object = entry
            return found
    return {}


def phase(pod: Object) -> str:
    """Kubernetes' word; "" before there is one."""
    return str((pod.get("status") or {}).get("phase") or "")


def main_container(pod: Object) -> str:
    """The container that trains."""
    return str(pod["spec"]["containers"][0]["name"])


def failures(pods: Iterable[Object]) -> list[Failure]:
    """Containers that ended with an error and pods that were thrown off their nodes, the first one first.

    Those that were ended from outside come last: they follow from another one's failure.
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
    """The first of the failures; None where nothing failed."""
    return next(iter(failures(pods)), None)


def not_started(ended: Object) -> str:
    """Why the runtime could not start a command that "ended"; "" where it was started."""
    if ended.get("reason") not in ("StartError", "ContainerCannotRun"):
        return ""
    return " ".join(str(ended.get("message", "")).rpartition("unable to start container process: ")[2].split())


def running(pods: Iterable[Object]) -> int:
    """How many pods run or have run."""
    return sum(phase(pod) in ("Running", "Succeeded", "Failed") for pod in pods)


def starts(pod: Object, container: str) -> int:
    """How often the container has started: 0 when it has no log yet."""
    for one in containers(pod):
        if one.get("name") == container and (state(one, "terminated") or "running" in (one.get("state") or {})):
            return int(one.get("restartCount", 0)) + 1
    return 0


def unplaced(pod: Object) -> Object:
    """What the scheduler says of a pod that has no node; empty where it says nothing."""
    found = condition(pod, "PodScheduled")
    return found if found.get("status") == "False" else {}


def waits_for(pods: Iterable[Object]) -> str:
    """Why the first of the waiting pods is not on a node yet; "" when none waits."""
    strings = (" ".join(str(unplaced(pod).get("message", "")).split()) for pod in pods)
    return next(filter(None, strings), "")


def blocked(pod: Object, *reasons: str) -> tuple[str, str, Object] | None:
    """(reason, message, status) of a container that waits for one of these reasons, by default those of `STUCK`."""
    for one in containers(pod):
        waiting = state(one, "waiting")
        if waiting.get("reason") in (reasons or STUCK):
            return str(waiting["reason"]), " ".join(str(waiting.get("message") or "").split()), one
    return None


def stuck(pods: Iterable[Object]) -> tuple[str, bool]:
    """(why a container can't start, whether it never will), or ("", False)."""
    for pod in pods:
        if found := blocked(pod):
            reason, message, _ = found
            return f"{place_of(pod)[2]}: {reason}: {message}".rstrip(": "), reason in NEVER
    return "", False
