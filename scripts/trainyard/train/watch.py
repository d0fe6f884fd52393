"""A job as it is now: its own object, its pods, its place in the queue, and what is complained of."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from trainyard.errors import UsageError
from trainyard.jobs import status
from trainyard.jobs.pods import JOB_LABEL
from trainyard.kube import Kube, KubeError
from trainyard.steps.pods import not_started

Object = dict[str, Any]
KINDS = (
    ("kubeflow.org/v1", "PyTorchJob"),
    ("kubeflow.org/v1", "TFJob"),
    ("kubeflow.org/v1", "MPIJob"),
    ("batch.volcano.sh/v1alpha1", "Job"),
    ("batch/v1", "Job"),
)
WAITING = ("Pending", "Inqueue", "")
STATUS = re.compile(r'\bMessage:"((?:[^"\\]|\\.)*)"')  # inside what Go prints of an error of the API
GROUP_NAME = "scheduling.k8s.io/group-name"  # a pod's annotation: its gang
TOLD = ("Error", "PodGroupPending", "StartError", "Unschedulable")  # by operators, of what the pods say themselves
GROUPS = "scheduling.volcano.sh/v1beta1"


@dataclass(frozen=True)
class Sight:
    """One look. `job` is None when it is gone; `groups` are gangs of the whole namespace that have pods to come."""

    job: Object | None
    pods: list[Object]
    groups: list[Object]
    events: list[Object]


class Watcher:
    """Looks at one job again and again."""

    def __init__(self, kube: Kube, manifest: Object) -> None:
        self.kube, self.manifest, self.name = kube, manifest, manifest["metadata"]["name"]
        self._path = f"{kube.path_of(manifest)}/{self.name}"

    def look(self) -> Sight:
        """The job now. Raises KubeError when the cluster can't be asked."""
        everybody = self._list("v1", "pods")
        pods = [pod for pod in everybody if (pod["metadata"].get("labels") or {}).get(JOB_LABEL) == self.name]
        return Sight(
            self.kube.find(self._path),
            sorted(pods, key=lambda pod: pod["metadata"]["name"]),
            _alive(self._list(GROUPS, "podgroups"), everybody),
            [event for event in self._list("v1", "events", fieldSelector="type=Warning") if self._ours(event, pods)],
        )

    def delete(self) -> None:
        """Takes the job and its pods away."""
        self.kube.delete(self._path)

    def _list(self, version: str, resource: str, **query: str) -> list[Object]:
        """Objects beside the job: where one may not see them, the view does without."""
        try:
            return self.kube.list(self.kube.path(version, resource), **query)
        except KubeError as error:
            if error.status in (403, 404):
                return []
            raise

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
    if group and _phase(group) in WAITING:
        return f"{_line(sight, group)}{_reason(group)}"
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


def _alive(groups: list[Object], pods: list[Object]) -> list[Object]:
    """Without gangs whose pods are all gone: the scheduler leaves them as they last were."""
    ended = ("Succeeded", "Failed")
    living = [pod for pod in pods if (pod.get("status") or {}).get("phase") not in ended]
    named = {(pod["metadata"].get("annotations") or {}).get(GROUP_NAME) for pod in living}
    pending = ("Pending", "")
    return [one for one in groups if one["metadata"]["name"] in named or _phase(one) in pending]


def _phase(group: Object) -> str:
    return (group.get("status") or {}).get("phase", "")


def _line(sight: Sight, group: Object) -> str:
    """Its place among what waits in the queue, as far as the team's own namespace shows it."""
    queue = (group.get("spec") or {}).get("queue", "default")
    waiting = [one for one in sight.groups if (one.get("spec") or {}).get("queue") == queue and _phase(one) in WAITING]
    older = [one for one in waiting if one["metadata"]["creationTimestamp"] < group["metadata"]["creationTimestamp"]]
    return f"in queue {queue}, number {len(older) + 1} of {len(waiting)} of this team"


def _reason(group: Object) -> str:
    for condition in reversed((group.get("status") or {}).get("conditions") or []):
        if condition.get("type") == "Unschedulable" and condition.get("status") == "True":
            return f": {' '.join(str(condition.get('message', '')).split())}"
    return ""


def _pods(pods: Sequence[Object]) -> str:
    return "pod" if len(pods) == 1 else "pods"
