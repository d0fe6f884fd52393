"""Actions on a training job: read its log, stop it, delete it."""

import time
from collections.abc import Callable, Iterator
from typing import Any

from trainyard.errors import TrainyardError, UsageError
from trainyard.kinds import status
from trainyard.kinds.launcher_log import is_noise
from trainyard.kinds.places import place_of
from trainyard.kube import Kube, KubeError
from trainyard.observe import jobs, pods
from trainyard.training import report
from trainyard.training.kept import NoLogError

Object = dict[str, Any]
POLL_INTERVAL_S = 2.0


def poll(kube: Kube, job: Object) -> jobs.JobSnapshot:
    """A new snapshot of the job."""
    return jobs.snapshot_of(jobs.around(kube), job, job["metadata"]["name"])


def stop(kube: Kube, job: Object) -> str:
    """Ends a job's pods; returns a sentence on the result.

    Raises:
        UsageError: the job was created by a pipeline step.
    """
    name, kind = job["metadata"]["name"], status.entry(job)
    if status.outcome(job)[0] != status.RUNNING:
        return f"job {name} had ended already"
    if run := jobs.made_by(job):
        raise UsageError(f"job {name} is a step of run {run}", hint=f"stop the run: trainyard runs stop {run}")
    change, stays = status.stop_of(kind), report.kept(job, kube.namespace)
    if change is None:
        _delete(kube, job)
        return f"job {name} is deleted with its pods, since a {report.kind_of(job)} can't be stopped and kept; {stays}"
    kube.patch(_path(kube, job), change)
    return f"job {name} is stopping; {stays}"


def delete(kube: Kube, job: Object, *, force: bool = False) -> str:
    """Deletes a job and its pods; its data in the store remain. Raises UsageError if the job has not ended."""
    name = job["metadata"]["name"]
    if status.outcome(job)[0] == status.RUNNING and not force:
        raise UsageError(f"job {name} has not ended", hint="stop it first, or add --force")
    _delete(kube, job)
    return f"job {name} deleted"


def lines(
    kube: Kube,
    job: Object,
    rank: str = "",
    *,
    follow: bool = False,
    tail: int | None = None,
    say: Callable[[str], None] = lambda text: None,
) -> Iterator[bytes]:
    """Lines of the log of the rank that represents the job, or of another rank.

    Args:
        rank: rank such as worker-1, or the pod's name.
        follow: wait for the rank to start, and continue until it ends.
        say: called with the reason for waiting.

    Raises:
        NoLogError: there is no log, with the reason.
        TrainyardError: the rank does not exist.
    """
    announced = ""
    while True:
        snapshot = poll(kube, job)
        pod = _chosen(snapshot, job, rank)
        main = pods.main_container(pod) if pod else ""
        if pod and pods.starts(pod, main):
            break
        state, why = jobs.outcome(snapshot)
        name = job["metadata"]["name"]
        if pod is None and rank and snapshot.pods:
            known = ", ".join(place_of(one)[2] for one in sorted(snapshot.pods, key=place_of))
            raise TrainyardError(f"job {name} has no rank {rank}; it has: {known}")
        if not follow or state in report.OVER:
            gone = "its pods are gone" if state in report.OVER and not pod else why or "it has not started"
            raise NoLogError(f"job {name} has no log: {gone}", hint=f"`trainyard runs show {name}` says more")
        if why != announced:
            say(f"{name} has not started yet: {why}")
            announced = why
        time.sleep(POLL_INTERVAL_S)
        job = _again(kube, job)
    for line in kube.logs(pod["metadata"]["name"], main, follow=follow, tail=tail):
        if not is_noise(line.decode(errors="replace")):
            yield line


def _chosen(snapshot: jobs.JobSnapshot, job: Object, rank: str) -> Object | None:
    if not rank:
        return jobs.first(snapshot, job)
    return next((pod for pod in snapshot.pods if rank in (place_of(pod)[2], pod["metadata"]["name"])), None)


def _again(kube: Kube, job: Object) -> Object:
    found = kube.find(_path(kube, job))
    if found is None:
        name = job["metadata"]["name"]
        raise KubeError(f"the job {name} was deleted while it was followed", status=404, where=kube.namespace)
    return {**found, "apiVersion": job["apiVersion"], "kind": job["kind"]}


def _delete(kube: Kube, job: Object) -> None:
    kube.delete(_path(kube, job))


def _path(kube: Kube, job: Object) -> str:
    kind = status.entry(job)
    return kube.path(kind.api_version, kind.plural, job["metadata"]["name"])
