"""A training job as a row of a list, as data, and as text."""

from typing import Any

from trainyard.kinds import registry, status
from trainyard.kinds.places import place_of
from trainyard.kinds.pods import JOB_LABEL
from trainyard.kinds.team_config import BUCKET
from trainyard.kube import Kube
from trainyard.observe import jobs, pods, words
from trainyard.observe.jobs import JobSnapshot
from trainyard.observe.listing import Row, columns
from trainyard.times import now, span, stamp, when

Object = dict[str, Any]
OVER = (status.SUCCEEDED, status.FAILED, status.STOPPED)


def kind_of(job: Object) -> str:
    """The kind as shown in a list: distinguishes Volcano's Job from Kubernetes' Job."""
    kind = status.entry(job)
    return "Volcano Job" if kind.part == registry.VOLCANO else kind.kind


def full_name(job: Object) -> str:
    """`pytorchjobs.kubeflow.org/digits-abc`: a unique name of the job."""
    return f"{status.entry(job).resource}/{job['metadata']['name']}"


def row(job: Object, around: jobs.NamespaceSnapshot) -> Row:
    """The job as a row of a list."""
    snapshot = jobs.snapshot_of(around, job, job["metadata"]["name"])
    state, note = jobs.outcome(snapshot)
    ran = sum(pods.phase(pod) in ("Running", "Succeeded") for pod in snapshot.pods)
    return Row(
        name=job["metadata"]["name"],
        kind=kind_of(job),
        state=state,
        done=f"{ran}/{len(snapshot.pods)}" if snapshot.pods else "",
        created=when(job["metadata"].get("creationTimestamp")),
        seconds=_seconds(job),
        note=note,
        queue=status.queue_of(job),
        priority=status.priority_of(job),
    )


def data(snapshot: JobSnapshot, *, whole: bool = True) -> Object:
    """One job as plain data; with `whole` including its pods and warnings."""
    job = snapshot.job or {}
    state, note = jobs.outcome(snapshot)
    found: Object = {
        "name": job["metadata"]["name"],
        "kind": kind_of(job),
        "namespace": job["metadata"].get("namespace", ""),
        "pipeline": "",
        "experiment": "",
        "state": state,
        "message": note,
        "created": stamp(when(job["metadata"].get("creationTimestamp"))),
        "started": stamp(when(status.started(job))),
        "finished": stamp(when(status.finished(job))),
        "queue": status.queue_of(job),
        "priority": status.priority_of(job),
        "submittedBy": "",
    }
    if whole:
        found["pods"] = [_pod(pod) for pod in sorted(snapshot.pods, key=place_of)]
        found["warnings"] = jobs.warnings(snapshot)
    return found


def lines(kube: Kube, snapshot: JobSnapshot) -> list[str]:
    """Description of a job: its state and why, its pods and warnings; after a failure, its error."""
    job = snapshot.job or {}
    state, note = jobs.outcome(snapshot)
    parts = [kind_of(job), span(_seconds(job)), f"queue {queue}" if (queue := status.queue_of(job)) else ""]
    found = [f"{job['metadata']['name']} in {kube.namespace}: {state}, {', '.join(filter(None, parts))}"]
    if note and state != status.FAILED:
        found.append(f"  {note}")
    if snapshot.pods:
        rows = [["RANK", "STATE", "TIMES STARTED", "NODE", "POD", "NOTE"]]
        rows += [list(map(str, _pod(pod).values())) for pod in sorted(snapshot.pods, key=place_of)]
        found += [f"  {line}" for line in columns(rows).splitlines()]
    if state not in OVER:
        found += [f"  warning: {text}" for text in jobs.warnings(snapshot)]
    if state == status.FAILED:
        found += ["", *failure(kube, snapshot, note)]
    elif state == status.STOPPED:
        found.append(f"  {kept(job, kube.namespace)}")
    return found


def failure(kube: Kube, snapshot: JobSnapshot, message: str) -> list[str]:
    """The first failure, and the end of its log."""
    name = (snapshot.job or {})["metadata"]["name"]
    seen = jobs.blamed(kube, snapshot)
    if seen is None:
        return [f"{name} failed: {message}"]
    text = seen.sentence if seen.words else f"{seen.sentence}; {message}"
    return [f"{name} failed: {text}", *words.quoted(seen.end_of_log)]


def kept(job: Object, namespace: str) -> str:
    """Which data of a stopped or deleted job remain, and how to resume."""
    name = job["metadata"]["name"]
    if JOB_LABEL not in (job["metadata"].get("labels") or {}):
        return "what its pods have written to the store stays"
    stays = f"what it has written stays in s3://{BUCKET}/{namespace}/jobs/{name}/"
    return f"{stays}, and `trainyard train --resume {name}` goes on from its checkpoints"


def _seconds(job: Object) -> float | None:
    begun, end = when(status.started(job)), when(status.finished(job)) or now()
    return max(0.0, (end - begun).total_seconds()) if begun else None


def _pod(pod: Object) -> Object:
    failed = pods.first_failure([pod])
    held = pods.blocked(pod, *pods.STUCK, pods.CRASHING)
    note = f"{held[0]}: {held[1]}".rstrip(": ") if held else failed.why if failed else pods.waits_for([pod])
    main = pods.main_container(pod)
    return {
        "rank": place_of(pod)[2],
        "state": pods.phase(pod).lower(),
        "starts": pods.starts(pod, main),
        "node": pod["spec"].get("nodeName", ""),
        "pod": pod["metadata"]["name"],
        "note": note,
    }
