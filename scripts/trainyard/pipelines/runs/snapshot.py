"""The cluster's details of a run: where its pods wait and why, its place in the queue, recent warnings."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from trainyard.kinds import registry
from trainyard.kube import Kube, KubeError, gangs
from trainyard.names import RUN
from trainyard.observe import jobs
from trainyard.observe import pods as seen
from trainyard.observe.events import about, happened, sentence
from trainyard.pipelines.runs import model, nodes
from trainyard.times import now, when

JOBS = {(kind.group, kind.kind): (kind.api_version, kind.plural) for kind in registry.with_gang()}
RECENT = timedelta(minutes=5)  # older warnings were about problems that are over
HELD = ("queued", "blocked", "pending")
QUIET = {"Unhealthy", "BackOff", "Unschedulable", "FailedScheduling"}  # the pod's own state has more detail

Object = dict[str, Any]


@dataclass(frozen=True)
class RunSnapshot:
    """A run and its surroundings at one moment. Keys of `places` and `notes` are steps' ids."""

    run: model.Run
    at: datetime
    places: dict[str, str] = field(default_factory=dict)  # queued | starting | blocked: more exact than "pending"
    notes: dict[str, str] = field(default_factory=dict)
    pods: dict[str, str] = field(default_factory=dict)  # node id -> pod
    jobs: tuple[str, ...] = ()  # one line for each of the run's training jobs whose gang waits

    def state(self, step: model.Step) -> str:
        """The step's state, with more detail from its pod."""
        return self.places.get(step.id, step.state) if not step.ended else step.state

    def note(self, step: model.Step) -> str:
        """The reason for the step's state; empty without one."""
        if step.ended:
            return step.reason
        if step.id in self.notes:
            return self.notes[step.id]
        return f"after {', '.join(step.after)}" if step.after else step.reason

    @property
    def waits(self) -> str:
        """The note of the first step that is held up, or of the first waiting training job; "" without any."""
        held = ((step, self.notes.get(step.id, "")) for step in self.run.steps)
        steps = (f"{step.name}: {note}" for step, note in held if note and self.state(step) in HELD)
        return next(iter([*steps, *self.jobs]), "")


class Observer:
    """Polls one run repeatedly."""

    def __init__(self, kube: Kube, name: str = "") -> None:
        self.kube, self.name = kube, name
        self._priorities: dict[str, int] | None = None
        self._runs_of_jobs: dict[str, str] = {}
        self._lengths: dict[str, int] = {}  # lengths of queues

    def poll(self) -> RunSnapshot:
        """The run now. Raises KubeError if it is gone or the cluster can't be queried."""
        run = nodes.run(fetch(self.kube, self.name))
        if run.ended:
            return RunSnapshot(run, now())
        if self._priorities is None:
            self._priorities = gangs.priorities(self.kube)
        return self.snapshot(run, jobs.around(self.kube, self._priorities))

    def snapshot(self, run: model.Run, around: jobs.NamespaceSnapshot) -> RunSnapshot:
        """The snapshot of an unfinished run, given its namespace's state."""
        at, pods, events, groups = now(), around.pods, around.events, around.groups
        self._lengths.clear()
        by_node = {node: pod for pod in pods if (node := _annotation(pod, model.NODE_OF_POD))}
        places: dict[str, str] = {}
        notes: dict[str, str] = {}
        for step in run.steps:
            pod = next((by_node[node] for node in reversed(step.nodes) if node in by_node), None)
            if step.ended or pod is None:
                continue
            place, note = _place(pod)
            if place == "queued":
                gang = next((one for one in groups if one["metadata"]["name"] == gangs.group_of(pod)), None)
                note = self._waiting(gang, around) or note
            if place:
                places[step.id] = place
            warning = _warning(events, pod["metadata"]["name"], at)
            if said := note or warning or (place and " "):
                notes[step.id] = said.strip()
        own = [node for step in run.steps for node in step.nodes if node in by_node]
        names = {node: by_node[node]["metadata"]["name"] for node in own}
        return RunSnapshot(run, at, places, notes, names, tuple(self._jobs(run, around, at)))

    def _jobs(self, run: model.Run, around: jobs.NamespaceSnapshot, at: datetime) -> Iterable[str]:
        """Training jobs of the run that wait for their gang, or whose pods are refused."""
        for group in around.groups:
            owner = gangs.owner(group)
            if not self._is_of(owner, run):
                continue
            if gangs.waits(group):
                size = group.get("spec", {}).get("minMember", 1)
                why = self._waiting(group, around) or "not yet looked at"
                wait = "waits to start" if size == 1 else f"has {size} pods, which wait to start together"
                yield f"{owner['kind']} {owner['name']} {wait}; {why}"
            elif warning := _warning(around.events, owner["name"], at):
                yield f"{owner['kind']} {owner['name']}: {warning}"

    def _is_of(self, owner: Object, run: model.Run) -> bool:
        """Whether a gang's owner is a job that a step of this run made. PodGroups have no labels; jobs do."""
        place = JOBS.get((owner.get("apiVersion", "").split("/")[0], owner.get("kind", "")))
        if place is None:
            return False
        if owner["uid"] not in self._runs_of_jobs:
            try:
                found = self.kube.find(self.kube.path(*place, owner["name"])) or {}
            except KubeError:
                found = {}
            self._runs_of_jobs[owner["uid"]] = str(found.get("metadata", {}).get("labels", {}).get(RUN, ""))
        return self._runs_of_jobs[owner["uid"]] == run.name

    def _waiting(self, group: Object | None, around: jobs.NamespaceSnapshot) -> str:
        """The gang's place among the waiting ones of its queue, and the scheduler's message."""
        if group is None:
            return "waiting for a place"
        queue = gangs.queue_of(group)
        place, count = gangs.position(around.line, group, around.priorities)
        said = [gangs.reason(group)]
        if place:
            if queue not in self._lengths:
                self._lengths[queue] = self._queue_length(queue)
            all_teams = self._lengths[queue]
            of = f"{place} of {count} in queue {queue}"
            said.insert(0, of if all_teams <= count else f"{of}, {all_teams} with other teams'")
        return ": ".join(filter(None, said))

    def _queue_length(self, queue: str) -> int:
        try:
            status = self.kube.get(self.kube.path(gangs.PODGROUPS, "queues", queue, namespace="")).get("status", {})
        except KubeError:
            return 0
        return int(status.get("pending") or 0) + int(status.get("inqueue") or 0)


def fetch(kube: Kube, name: str) -> Object:
    """The Workflow of a run. Raises KubeError with a hint if there is none."""
    found = kube.find(kube.path(model.VERSION, model.RESOURCE, name))
    if found is None:
        raise KubeError(
            f"no run {name} in {kube.namespace}",
            status=404,
            hint="`trainyard runs list` shows those there are",
        )
    return found


def pod_of(kube: Kube, run: str, node: str) -> str:
    """Name of a node's pod; empty if it is gone."""
    pods = kube.list(kube.path("v1", "pods"), labelSelector=f"{model.RUN_OF_POD}={run}")
    return next((pod["metadata"]["name"] for pod in pods if _annotation(pod, model.NODE_OF_POD) == node), "")


def _annotation(pod: Object, key: str) -> str:
    return str(pod["metadata"].get("annotations", {}).get(key, ""))


def _place(pod: Object) -> tuple[str, str]:
    """The state of a pod that is starting, and what delays it."""
    if seen.phase(pod) == "Running":
        return "running", ""  # Argo reports this a little later
    if seen.phase(pod) != "Pending":
        return "", ""
    if seen.unplaced(pod) or not pod.get("spec", {}).get("nodeName"):
        return "queued", seen.waits_for([pod])
    if found := seen.blocked(pod, *seen.STUCK, seen.CRASHING):
        reason, message, container = found
        return "blocked", f"{reason}: {message or container.get('image', '')}"
    return "starting", f"on {pod['spec']['nodeName']}"


def _warning(events: list[Object], name: str, at: datetime) -> str:
    """The last warning about an object or about a pod whose name begins with the object's."""
    last = ("", "")
    for event in events:
        whose, time = about(event).get("name", ""), happened(event)
        if event.get("reason") in QUIET or not (whose == name or whose.startswith(f"{name}-")):
            continue
        if (at_time := when(time)) and at - at_time < RECENT:
            last = max(last, (time, sentence(event)))
    return last[1]
