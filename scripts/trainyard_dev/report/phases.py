"""Turns Kubernetes objects into spans of the timeline: queued, placed, pulling, running, done.

Input are dicts as ``kubectl get -o json`` prints them. Their timestamps have a grain of one second, so each phase may
be off by a second at either end, and a phase that began and ended within one second is left out.

- *queued*: from the creation of the job, PodGroup or pod until the pod is bound to a node
- *placed*: bound; volumes, sandbox and init containers are being set up
- *pulling*: an image is being fetched, from the first ``Pulling`` to the last ``Pulled`` event; without these events it
  is part of *placed*
- *running*: from the start of the pod's containers until the last has finished
- *done*: the moment when the last container finished; without it, the phase under way runs up to ``until``
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from trainyard.times import moment
from trainyard_dev.report.model import Span

Object = Mapping[str, Any]


@dataclass(frozen=True)
class Lifetimes:
    """The moments of one pod or of a whole gang (Unix seconds); None for what did not happen or isn't known."""

    created: float | None = None
    placed: float | None = None
    pulling: float | None = None
    pulled: float | None = None
    running: float | None = None
    finished: float | None = None
    failed: bool = False

    def spans(self, lane: str, label: str, until: float | None) -> list[Span]:
        """The phases in order, each ending where the next begins. ``until`` closes the one that is under way."""
        end = self.finished if self.finished is not None else until
        marks = [("queued", self.created), ("placed", self.placed), ("pulling", self.pulling)]
        if self.pulling is not None:
            marks.append(("placed", self.pulled))
        marks.append(("running", self.running))
        known = [(phase, at) for phase, at in marks if at is not None]
        result: list[Span] = []
        for index, (phase, at) in enumerate(known):
            following = [t for _, t in known[index + 1 :]]
            stop = min(following, default=at if end is None else end)
            start = max(at, result[-1].end) if result else at
            if stop > start:
                result.append(Span(lane, phase, start, stop, label))
        if self.finished is not None:
            last = max(self.finished, result[-1].end if result else self.finished)
            result.append(Span(lane, "failed" if self.failed else "done", last, last, label))
        return result


def pod_life(pod: Object, events: Iterable[Object] = ()) -> Lifetimes:
    """When one pod was created, bound, pulling, running and finished."""
    meta, status = pod.get("metadata", {}), pod.get("status", {})
    mine = [ev for ev in events if _about(ev, meta)]
    pulling = [t for ev in mine if ev.get("reason") == "Pulling" and (t := _event_time(ev)) is not None]
    pulled = [t for ev in mine if ev.get("reason") == "Pulled" and (t := _event_time(ev)) is not None]
    starts, ends, codes = [], [], []
    for container in status.get("containerStatuses") or []:
        state = container.get("state", {})
        over = state.get("terminated") or {}
        start = moment((state.get("running") or over).get("startedAt"))
        if start is not None:
            starts.append(start)
        if over:
            codes.append(int(over.get("exitCode", 0)))
            finish = moment(over.get("finishedAt"))
            if finish is not None:
                ends.append(finish)
    ended = status.get("phase") in ("Succeeded", "Failed")
    first = min(pulling, default=None)
    return Lifetimes(
        created=moment(meta.get("creationTimestamp")),
        placed=_condition(status, "PodScheduled"),
        pulling=first,
        pulled=max((t for t in pulled if first is not None and t >= first), default=None),
        running=max(starts, default=None),
        finished=max(ends, default=None) if ended else None,
        failed=status.get("phase") == "Failed" or any(codes),
    )


def gang_life(lives: Sequence[Lifetimes], created: float | None = None, members: int | None = None) -> Lifetimes:
    """The life of a gang: queued until its *last* member is placed, running once *all* run, done with the last.

    ``members`` is how many pods are needed; with fewer, the gang is not placed. ``created`` is when the job was made.
    """
    complete = bool(lives) and len(lives) >= (members or 0)

    def last(values: list[float | None]) -> float | None:
        known = [v for v in values if v is not None]
        return max(known) if complete and len(known) == len(values) else None

    born = [v for v in (created, *(life.created for life in lives)) if v is not None]
    placed = last([life.placed for life in lives])
    pulls = [life for life in lives if life.pulling is not None]
    first = min((life.pulling for life in pulls if life.pulling is not None), default=None)
    return Lifetimes(
        created=min(born, default=None),
        placed=placed,
        pulling=None if first is None or placed is None else max(first, placed),
        pulled=max((life.pulled for life in pulls if life.pulled is not None), default=None)
        if pulls and all(life.pulled is not None for life in pulls)
        else None,
        running=last([life.running for life in lives]),
        finished=last([life.finished for life in lives]),
        failed=any(life.failed for life in lives),
    )


def job_spans(
    lane: str,
    pods: Sequence[Object],
    *,
    podgroup: Object | None = None,
    job: Object | None = None,
    events: Iterable[Object] = (),
    until: float | None = None,
) -> list[Span]:
    """The spans of one training job as a whole; ``until`` (Unix seconds) closes a phase that is still under way."""
    known = list(events)
    lives = [pod_life(pod, known) for pod in pods]
    times = [moment((o or {}).get("metadata", {}).get("creationTimestamp")) for o in (job, podgroup)]
    created = min((t for t in times if t is not None), default=None)
    members = int((podgroup or {}).get("spec", {}).get("minMember") or 0)
    gang = gang_life(lives, created, members)
    count = len(pods)
    label = f"{count} pod{'' if count == 1 else 's'}" + (f", all or none of {members}" if members > 1 else "")
    return gang.spans(lane, label, until)


def _about(event: Object, meta: Mapping[str, Any]) -> bool:
    about = event.get("involvedObject") or event.get("regarding") or {}
    if about.get("uid") and meta.get("uid"):
        return bool(about["uid"] == meta["uid"])
    return about.get("name") == meta.get("name") and about.get("namespace") == meta.get("namespace")


def _event_time(event: Object) -> float | None:
    for key in ("firstTimestamp", "eventTime", "lastTimestamp"):
        found = moment(event.get(key))
        if found is not None:
            return found
    return moment(event.get("metadata", {}).get("creationTimestamp"))


def _condition(status: Mapping[str, Any], kind: str) -> float | None:
    for condition in status.get("conditions") or []:
        if condition.get("type") == kind and condition.get("status") == "True":
            return moment(condition.get("lastTransitionTime"))
    return None
