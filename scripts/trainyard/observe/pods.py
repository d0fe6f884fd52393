"""What pods of a job say: which rank failed and why, and what keeps others from starting."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from trainyard.kinds.places import place_of

Object = dict[str, Any]
NEVER = ("InvalidImageName",)
STUCK = ("ErrImagePull", "ImagePullBackOff", "CreateContainerConfigError", "CreateContainerError", "ErrImageNeverPull")


@dataclass(frozen=True)
class Failure:
    """The rank that failed first. `message`: why its command could not even be started."""

    pod: str
    container: str
    rank: str
    why: str
    message: str = ""


def main_container(pod: Mapping[str, Any]) -> str:
    """The container that trains."""
    return pod["spec"]["containers"][0]["name"]


def first_failure(pods: Iterable[Object]) -> Failure | None:
    """The container that ended with an error before all others, or a pod that was thrown off its node."""
    found: list[tuple[str, Failure]] = []
    for pod in pods:
        rank, name = place_of(pod)[2], pod["metadata"]["name"]
        status = pod.get("status") or {}
        everyone = [*(status.get("initContainerStatuses") or []), *(status.get("containerStatuses") or [])]
        for entry in everyone:
            for state in (entry.get("state") or {}, entry.get("lastState") or {}):
                ended = state.get("terminated") or {}
                if ended.get("exitCode"):
                    reason = ended.get("reason", "")
                    why = f"exit code {ended['exitCode']}" + (f", {reason}" if reason not in ("", "Error") else "")
                    failure = Failure(name, entry["name"], rank, why, not_started(ended))
                    found.append((ended.get("finishedAt") or "9", failure))
        if status.get("phase") == "Failed" and status.get("reason"):
            why = f"{status['reason']}: {status.get('message', '')}".rstrip(": ")
            found.append(("8", Failure(name, main_container(pod), rank, why)))
    return min(found, key=lambda entry: entry[0])[1] if found else None


def not_started(ended: Mapping[str, Any]) -> str:
    """Why the runtime could not start a command that "ended"; "" where it was started."""
    if ended.get("reason") not in ("StartError", "ContainerCannotRun"):
        return ""
    return " ".join(str(ended.get("message", "")).rpartition("unable to start container process: ")[2].split())


def running(pods: Iterable[Object]) -> int:
    """How many pods run or have run."""
    return sum((pod.get("status") or {}).get("phase") in ("Running", "Succeeded", "Failed") for pod in pods)


def waits_for(pods: Iterable[Object]) -> str:
    """Why the first of the waiting pods is not on a node yet; "" when none waits."""
    for pod in pods:
        for entry in (pod.get("status") or {}).get("conditions") or []:
            if entry.get("type") == "PodScheduled" and entry.get("status") == "False" and entry.get("message"):
                return " ".join(entry["message"].split())
    return ""


def stuck(pods: Iterable[Object]) -> tuple[str, bool]:
    """(why a container can't start, whether it never will), or ("", False)."""
    for pod in pods:
        status = pod.get("status") or {}
        for entry in [*(status.get("initContainerStatuses") or []), *(status.get("containerStatuses") or [])]:
            waiting = (entry.get("state") or {}).get("waiting") or {}
            if waiting.get("reason") in (*NEVER, *STUCK):
                text = f"{place_of(pod)[2]}: {waiting['reason']}: {waiting.get('message', '')}".rstrip(": ")
                return " ".join(text.split()), waiting["reason"] in NEVER
    return "", False
