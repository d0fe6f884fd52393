"""State of training jobs: their own objects, their pods, their place in the queue, and warnings about them."""

from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

from trainyard.errors import UsageError
from trainyard.kinds import registry, status
from trainyard.kinds.places import place_of
from trainyard.kinds.pods import JOB_LABEL
from trainyard.kube import Kube, KubeError, gangs
from trainyard.names import RUN
from trainyard.observe import blame, events, pods

Object = dict[str, Any]
KINDS = tuple((kind.api_version, kind.kind) for kind in registry.KINDS)
REPEATED = {*pods.STUCK, "Error", "PodGroupPending", "Unschedulable"}  # operators repeat what pods report themselves
# Pod labels with the job's name: ours, and those of operators and Kubernetes for jobs created by other means.
OF_JOB = (JOB_LABEL, "training.kubeflow.org/job-name", "volcano.sh/job-name", "batch.kubernetes.io/job-name")
TRANSFER = "trainyard.io/transfer"  # label of the jobs that transfer files between a machine and the store
QUEUED, STARTING, WAITING, ENDING, BLOCKED = "queued", "starting", "waiting", "ending", "blocked"


@dataclass(frozen=True)
class NamespaceSnapshot:
    """Snapshot of a namespace. `line` are its waiting gangs; `priorities` the values of the priority classes."""

    pods: list[Object] = field(default_factory=list)
    groups: list[Object] = field(default_factory=list)
    line: list[Object] = field(default_factory=list)
    events: list[Object] = field(default_factory=list)
    priorities: dict[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class JobSnapshot:
    """Snapshot of a job. `job` is None if it no longer exists; `line` are the waiting gangs of the whole namespace."""

    job: Object | None
    pods: list[Object]
    groups: list[Object]
    line: list[Object]
    events: list[Object]
    priorities: dict[str, int]


class Watcher:
    """Polls one job."""

    def __init__(self, kube: Kube, manifest: Object) -> None:
        self.kube, self.manifest, self.name = kube, manifest, manifest["metadata"]["name"]
        self._priorities: dict[str, int] | None = None
        self._path = f"{kube.path_of(manifest)}/{self.name}"

    def poll(self) -> JobSnapshot:
        """A new snapshot of the job. Raises KubeError if the cluster can't be queried."""
        if self._priorities is None:
            self._priorities = gangs.priorities(self.kube)
        job = self.kube.find(self._path)  # read before its pods, so that they are not older than the job
        return snapshot_of(around(self.kube, self._priorities), job, self.name)

    def delete(self) -> None:
        """Deletes the job and its pods."""
        self.kube.delete(self._path)


def around(kube: Kube, priorities: dict[str, int] | None = None) -> NamespaceSnapshot:
    """A snapshot of the namespace."""
    everybody = gangs.listed(kube, "v1", "pods")
    groups = gangs.listed(kube, gangs.PODGROUPS, "podgroups")
    warnings = gangs.listed(kube, "v1", "events", fieldSelector="type=Warning")
    values = gangs.priorities(kube) if priorities is None else priorities
    return NamespaceSnapshot(everybody, groups, gangs.waiting(groups, everybody), warnings, values)


def snapshot_of(seen: NamespaceSnapshot, job: Object | None, name: str) -> JobSnapshot:
    """The snapshot of one job in the namespace."""
    own = sorted((pod for pod in seen.pods if _is_of(pod, job, name)), key=lambda pod: str(pod["metadata"]["name"]))
    concerning = [event for event in seen.events if _concerns(event, name, own)]
    return JobSnapshot(job, own, seen.groups, seen.line, concerning, seen.priorities)


def _is_of(pod: Object, job: Object | None, name: str) -> bool:
    """Whether a pod belongs to the job: by its owner if that is a job, else by label."""
    for owner in pod["metadata"].get("ownerReferences") or []:
        if job and registry.of_object(owner):
            return bool(owner.get("uid") == job["metadata"].get("uid"))
    labels = pod["metadata"].get("labels") or {}
    return any(labels.get(key) == name for key in OF_JOB)


def _concerns(event: Object, name: str, own: list[Object]) -> bool:
    whose = events.about(event)
    if whose.get("kind") == "Pod":
        return whose.get("name") in {pod["metadata"]["name"] for pod in own}
    if whose.get("kind") == "PodGroup" or event.get("reason") in REPEATED:
        return False  # `place` shows the scheduler's message about a gang, and the job's end shows why a rank ended
    return whose.get("name") == name or str(whose.get("name", "")).startswith(f"{name}-")


def find(kube: Kube, name: str) -> Object:
    """The job of any kind with that name. Raises UsageError if there is none."""
    found = named(kube, name)
    if not found:
        raise missing(kube, name)
    return found[0]


class MissingError(UsageError):
    """The job does not exist, or no longer exists."""


def missing(kube: Kube, name: str) -> MissingError:
    """The error for a job that does not exist."""
    hint = "finished jobs are deleted after `keep`; their results stay in the store"
    return MissingError(f"no job {name} in {kube.namespace}", hint=hint)


def named(kube: Kube, name: str, kinds: Sequence[registry.Kind] = registry.KINDS) -> list[Object]:
    """All jobs with that name, of the given kinds."""

    def one(kind: registry.Kind) -> list[Object]:
        try:
            found = kube.find(kube.path(kind.api_version, kind.plural, name))
        except KubeError as error:
            if error.status != 403:
                raise
            return []
        return [_whole(found, kind)] if found else []

    return _joined(one, kinds)


def listed(kube: Kube, labels: str = "") -> list[Object]:
    """The namespace's jobs, newest first, without those created by a pipeline step or a transfer."""

    def all_of(kind: registry.Kind) -> list[Object]:
        query = {"labelSelector": labels} if labels else {}
        return [_whole(one, kind) for one in gangs.listed(kube, kind.api_version, kind.plural, **query)]

    found = [job for job in _joined(all_of, registry.KINDS) if not (made_by(job) or TRANSFER in _labels(job))]
    return sorted(found, key=lambda job: str(job["metadata"].get("creationTimestamp", "")), reverse=True)


def made_by(job: Object) -> str:
    """The pipeline run whose step created the job; "" for an independent job."""
    return str(_labels(job).get(RUN, ""))


def outcome(snapshot: JobSnapshot) -> tuple[str, str]:
    """(state of the job as one word, why it waits or how it ended)."""
    job = snapshot.job or {}
    state, message = status.outcome(job)
    name = str((job.get("metadata") or {}).get("name", ""))
    if state == status.STOPPED and any(pods.phase(pod) in ("Pending", "Running") for pod in snapshot.pods):
        return "stopping", "its pods are ending"
    if state != status.RUNNING:
        return state, " ".join(message.split())
    if (job.get("metadata") or {}).get("deletionTimestamp"):
        return "deleting", "its pods are ending"
    return standing(snapshot, name)


def group_of(snapshot: JobSnapshot, name: str) -> Object | None:
    """The gang of the job's pods: PodGroups are named after the job, or after the job and its uid."""
    uid = ((snapshot.job or {}).get("metadata") or {}).get("uid", "")
    pods = {pod["metadata"].get("uid", "") for pod in snapshot.pods}
    for group in snapshot.groups:
        owners = {owner.get("uid", "") for owner in group["metadata"].get("ownerReferences") or []}
        if group["metadata"]["name"] in (name, f"{name}-{uid}") or owners & (pods | {uid}) - {""}:
            return group
    return None


def place(snapshot: JobSnapshot, name: str) -> str:
    """The job's place: in the queue with the scheduler's message, starting, or running on which nodes."""
    return standing(snapshot, name)[1]


def standing(snapshot: JobSnapshot, name: str) -> tuple[str, str]:
    """(state of the job as one word, its place as in `place`)."""
    group = group_of(snapshot, name)
    running = [pod for pod in snapshot.pods if pods.phase(pod) == "Running"]
    least = status.least(snapshot.job or {}) or len(snapshot.pods)
    if running and len(running) >= least:
        nodes = sorted({pod["spec"].get("nodeName", "?") for pod in running})
        size = f"{len(running)}" if len(running) == len(snapshot.pods) else f"{len(running)} of {len(snapshot.pods)}"
        return status.RUNNING, f"{size} {_pods(snapshot.pods)} running on {', '.join(nodes)}"
    if group and group in snapshot.line:
        return QUEUED, _queued(snapshot, group)
    done = [pod for pod in snapshot.pods if pods.phase(pod) in ("Succeeded", "Failed")]
    if done:
        return ENDING, f"ending: {len(done)} of {len(snapshot.pods)} {_pods(snapshot.pods)} ended"
    if any(pod["spec"].get("nodeName") for pod in snapshot.pods):
        why = pods.stuck(sorted(snapshot.pods, key=place_of))[0]
        text = f"starting: {len(running)} of {len(snapshot.pods)} {_pods(snapshot.pods)} run"
        return (BLOCKED, f"{text}; {why}") if why else (STARTING, text)
    return WAITING, "waiting for a node" if snapshot.pods else "waiting for its pods"


def warnings(snapshot: JobSnapshot) -> list[str]:
    """Warnings about the job and its pods, one sentence each, oldest first."""
    ordered = sorted(snapshot.events, key=events.happened)
    return list(dict.fromkeys(f"{events.about(one).get('name', '?')}: {events.sentence(one)}" for one in ordered))


def blamed(kube: Kube, snapshot: JobSnapshot) -> blame.Blame | None:
    """The rank that failed first, and its error; None if no rank failed."""
    return blame.blamed(snapshot.pods, lambda pod, container, count: tail(kube, pod, container, count))


def tail(kube: Kube, pod: str, container: str, count: int) -> list[str]:
    """The last lines of a container's log; empty if there is no log."""
    try:
        return [line.decode(errors="replace") for line in kube.logs(pod, container, tail=count)]
    except KubeError:
        return []


def first(snapshot: JobSnapshot, manifest: Object) -> Object | None:
    """The pod whose log to show for the job."""
    name = status.first_pod(manifest)
    found = next((pod for pod in snapshot.pods if not name or pod["metadata"]["name"] == name), None)
    if found is None and not _is_ours(manifest):  # another creator's job may have other roles
        return min(snapshot.pods, key=place_of, default=None)
    return found


def container(manifest: Object, pod: Object) -> str:
    """Name of the container that runs the command."""
    return status.container(manifest) if _is_ours(manifest) else pods.main_container(pod)


def _queued(snapshot: JobSnapshot, group: Object) -> str:
    """The job's position among the team's waiting gangs of its queue, and why it waits."""
    queue, why = gangs.queue_of(group), gangs.reason(group)
    number, count = gangs.position(snapshot.line, group, snapshot.priorities)
    return f"in queue {queue}, number {number} of {count} of this team" + (f": {why}" if why else "")


def _joined(one: Any, kinds: Iterable[registry.Kind]) -> list[Object]:
    """Queries all kinds concurrently, and joins the results."""
    with ThreadPoolExecutor(max_workers=8) as pool:
        return [job for found in pool.map(one, kinds) for job in found]


def _whole(job: Object, kind: registry.Kind) -> Object:
    """The job with version and kind, which the items of a list lack."""
    return {**job, "apiVersion": kind.api_version, "kind": kind.kind}


def _is_ours(job: Object) -> bool:
    return JOB_LABEL in _labels(job)


def _labels(job: Object) -> Object:
    found: Object = job["metadata"].get("labels") or {}
    return found


def _pods(found: Sequence[Object]) -> str:
    return "pod" if len(found) == 1 else "pods"
