"""A job as it is now: its own object, its pods, its place in the queue, and what is complained of."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from trainyard.errors import UsageError
from trainyard.kinds import registry, status
from trainyard.kinds.pods import JOB_LABEL
from trainyard.kube import Kube, KubeError, gangs
from trainyard.training.pods import not_started

Object = dict[str, Any]
KINDS = tuple((kind.api_version, kind.kind) for kind in registry.KINDS)
STATUS = re.compile(r'\bMessage:"((?:[^"\\]|\\.)*)"')  # inside what Go prints of an error of the API
TOLD = (  # by operators, of what the pods say themselves
    "ErrImagePull",
    "Error",
    "ImagePullBackOff",
    "PodGroupPending",
    "StartError",
    "Unschedulable",
)


@dataclass(frozen=True)
class Sight:
    """One look. `job` is None when it is gone; `line` are the gangs of the whole namespace that wait."""

    job: Object | None
    pods: list[Object]
    groups: list[Object]
    line: list[Object]
    events: list[Object]
    priorities: dict[str, int]  # values of the priority classes


class Watcher:
    """Looks at one job again and again."""

    def __init__(self, kube: Kube, manifest: Object) -> None:
        self.kube, self.manifest, self.name = kube, manifest, manifest["metadata"]["name"]
        self._priorities: dict[str, int] | None = None
        self._path = f"{kube.path_of(manifest)}/{self.name}"

    def look(self) -> Sight:
        """The job now. Raises KubeError when the cluster can't be asked."""
        if self._priorities is None:
            self._priorities = gangs.priorities(self.kube)
        everybody = gangs.listed(self.kube, "v1", "pods")
        groups = gangs.listed(self.kube, gangs.PODGROUPS, "podgroups")
        warnings = gangs.listed(self.kube, "v1", "events", fieldSelector="type=Warning")
        pods = [pod for pod in everybody if (pod["metadata"].get("labels") or {}).get(JOB_LABEL) == self.name]
        return Sight(
            self.kube.find(self._path),
            sorted(pods, key=lambda pod: pod["metadata"]["name"]),
            groups,
            gangs.waiting(groups, everybody),
            [event for event in warnings if self._ours(event, pods)],
            self._priorities,
        )

    def delete(self) -> None:
        """Takes the job and its pods away."""
        self.kube.delete(self._path)

    def _ours(self, event: Object, pods: list[Object]) -> bool:
        about = event.get("involvedObject") or {}
        if about.get("kind") == "Pod":
            return about.get("name") in {pod["metadata"]["name"] for pod in pods}
        if about.get("kind") == "PodGroup" or event.get("reason") in TOLD:
            return False  # what the scheduler says of a gang stands in its place, what ended a rank in the job's end
        return about.get("name") == self.name or str(about.get("name", "")).startswith(f"{self.name}-")


def find(kube: Kube, name: str) -> Object:
    """A job of any kind by its name. Raises UsageError when there is none."""
    for version, kind in KINDS:
        wanted = {"apiVersion": version, "kind": kind, "metadata": {"name": name}}
        try:
            found = kube.find(f"{kube.path_of(wanted)}/{name}")
        except KubeError as error:
            if error.status != 404:
                raise
            continue  # a site without this kind
        if found is not None:
            return wanted | {"metadata": found["metadata"]}
    mend = "finished jobs go after a while (`keep`); their results stay in the store"
    raise UsageError(f"there is no job {name} in {kube.namespace}", mend=mend)


def group_of(sight: Sight, name: str) -> Object | None:
    """The gang of the job's pods: PodGroups are called after the job, or after it and its number."""
    uid = ((sight.job or {}).get("metadata") or {}).get("uid", "")
    pods = {pod["metadata"].get("uid", "") for pod in sight.pods}
    for group in sight.groups:
        owners = {owner.get("uid", "") for owner in group["metadata"].get("ownerReferences") or []}
        if group["metadata"]["name"] in (name, f"{name}-{uid}") or owners & (pods | {uid}) - {""}:
            return group
    return None


def place(sight: Sight, name: str) -> str:
    """Where the job stands: in the queue with what the scheduler says, starting, or running on which nodes."""
    group = group_of(sight, name)
    running = [pod for pod in sight.pods if (pod.get("status") or {}).get("phase") == "Running"]
    if running and len(running) == len(sight.pods):
        nodes = sorted({pod["spec"].get("nodeName", "?") for pod in running})
        return f"{len(running)} {_pods(running)} running on {', '.join(nodes)}"
    if group in sight.line:
        return _queued(sight, group)
    done = [pod for pod in sight.pods if (pod.get("status") or {}).get("phase") in ("Succeeded", "Failed")]
    if done:
        return f"ending: {len(done)} of {len(sight.pods)} {_pods(sight.pods)} ended"
    placed = [pod for pod in sight.pods if pod["spec"].get("nodeName")]
    if placed:
        return f"starting: {len(running)} of {len(sight.pods)} {_pods(sight.pods)} run"
    return "waiting for its pods" if not sight.pods else "waiting for a node"


def complaints(sight: Sight) -> list[str]:
    """Warnings about the job and its pods, one sentence each, oldest first."""
    found = []
    for event in sorted(
        sight.events, key=lambda event: str(event.get("lastTimestamp") or event.get("eventTime") or "")
    ):
        about = event.get("involvedObject") or {}
        text = " ".join(str(event.get("message", "")).split()).removeprefix("(combined from similar events): ")
        if inner := STATUS.search(text):
            text = inner[1].replace('\\"', '"')
        found.append(f"{about.get('name', '?')}: {event.get('reason', '')}: {text}")
    return list(dict.fromkeys(found))


def culprits(pods: Sequence[Object]) -> list[tuple[str, int, str]]:
    """(pod, exit code, why its command could not be started) of the ranks that failed.

    The first to fail comes first; those ended from outside come last.
    """
    failed = []
    for pod in pods:
        facts = pod.get("status") or {}
        for one in [*(facts.get("initContainerStatuses") or []), *(facts.get("containerStatuses") or [])]:
            ended = (one.get("state") or {}).get("terminated") or (one.get("lastState") or {}).get("terminated") or {}
            if code := int(ended.get("exitCode") or 0):
                when, why = str(ended.get("finishedAt") or "9"), not_started(ended)
                failed.append((code in (137, 143), when, pod["metadata"]["name"], code, why))
    return [(name, code, why) for _, _, name, code, why in sorted(failed)]


def started(pod: Object, container: str) -> int:
    """How often the container has started: 0 when it has no log yet."""
    for one in (pod.get("status") or {}).get("containerStatuses") or []:
        if one.get("name") == container and any(key in (one.get("state") or {}) for key in ("running", "terminated")):
            return int(one.get("restartCount", 0)) + 1
    return 0


def first(sight: Sight, manifest: Object) -> Object | None:
    """The pod whose log tells the job's story."""
    name = status.first_pod(manifest)
    return next((pod for pod in sight.pods if not name or pod["metadata"]["name"] == name), None)


def _queued(sight: Sight, group: Object) -> str:
    """Its place among what waits in the queue, as far as the team's own namespace shows it, and why it waits."""
    queue, why = gangs.queue_of(group), gangs.reason(group)
    names = gangs.line(sight.line, queue, sight.priorities)
    place = names.index(group["metadata"]["name"]) + 1
    return f"in queue {queue}, number {place} of {len(names)} of this team" + (f": {why}" if why else "")


def _pods(pods: Sequence[Object]) -> str:
    return "pod" if len(pods) == 1 else "pods"
