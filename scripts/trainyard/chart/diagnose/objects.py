"""Data collected from a cluster, with the queries that the rules need.

Objects are dicts as ``kubectl get -o json`` prints them, and not validated: a missing field is not an error.
"""

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from trainyard.observe.pods import containers, state
from trainyard.times import moment

Object = Mapping[str, Any]


@dataclass
class Collected:
    """Data collected from one cluster at one moment.

    ``logs`` maps ``namespace/pod/container`` (and ``…/previous``) to its last lines; ``problems`` lists what could not
    be collected; ``checks`` are the checks of the run so far (``id``, ``status``, ``reason``, ``figures``). Objects
    whose name begins with one of ``expected`` are ignored: a check made them to be rejected. ``now`` is Unix seconds.
    """

    events: list[Object] = field(default_factory=list)
    pods: list[Object] = field(default_factory=list)
    nodes: list[Object] = field(default_factory=list)
    podgroups: list[Object] = field(default_factory=list)
    queues: list[Object] = field(default_factory=list)
    jobs: list[Object] = field(default_factory=list)
    claims: list[Object] = field(default_factory=list)
    logs: dict[str, str] = field(default_factory=dict)
    checks: list[Object] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    expected: Sequence[str] = ()
    now: float = field(default_factory=time.time)

    def is_expected(self, item: str) -> bool:
        return any(item.startswith(prefix) for prefix in self.expected)

    def sick_pods(self) -> Iterator[Object]:
        """Pods that have neither succeeded nor have all containers ready."""
        return (p for p in self.pods if not is_well(p) and not self.is_expected(name(p)))

    def age(self, stamp: Any) -> float:
        """Seconds since an RFC 3339 time; infinite if it is missing or invalid, so that the item counts as old."""
        at = moment(stamp) if isinstance(stamp, str) else None
        return float("inf") if at is None else self.now - at

    def live_events(self, *reasons: str) -> Iterator[Object]:
        """Events with these reasons that are still relevant, latest first.

        Events of pods that are well again or gone are irrelevant; if no pod could be read, every event is relevant.
        """
        sick = {(namespace(p), name(p)) for p in self.sick_pods()}
        made = {_about(ev): event_time(ev) for ev in self.events if ev.get("reason") == "SuccessfulCreate"}
        for event in reversed(self.events):
            kind, space, item = _about(event)
            if event.get("reason") not in reasons or self.is_expected(item):
                continue
            if kind == "Pod" and self.pods and (space, item) not in sick:
                continue
            if made.get((kind, space, item), "") > event_time(event):
                continue
            yield event

    def last_line(self, pod: Object, container: str) -> str:
        """Last log line of a container, from its previous instance if known; empty if there is none."""
        key = f"{namespace(pod)}/{name(pod)}/{container}"
        for candidate in (f"{key}/previous", key):
            lines = [line.strip() for line in self.logs.get(candidate, "").splitlines() if line.strip()]
            if lines:
                return shorten(lines[-1], 240)
        return ""


def name(item: Object) -> str:
    return str((item.get("metadata") or {}).get("name", ""))


def namespace(item: Object) -> str:
    return str((item.get("metadata") or {}).get("namespace", ""))


def key(item: Object) -> str:
    """``namespace/name``."""
    return f"{namespace(item)}/{name(item)}"


def where(pod: Object) -> str:
    """``namespace/pod``, with its node if it has one."""
    node = (pod.get("spec") or {}).get("nodeName")
    return f"{namespace(pod)}/{name(pod)}" + (f" on node {node}" if node else "")


def is_starting(pod: Object) -> bool:
    """Whether the pod waits for volumes, network or devices: none of its containers has ever started."""
    early = ("ContainerCreating", "PodInitializing")
    if not containers(pod):
        return (pod.get("status") or {}).get("phase") == "Pending"
    return all(state(c, "waiting").get("reason") in early and not c.get("restartCount") for c in containers(pod))


def is_well(pod: Object) -> bool:
    """Whether the pod has succeeded, or runs with every container ready."""
    status = pod.get("status") or {}
    if status.get("phase") == "Succeeded":
        return True
    main = status.get("containerStatuses") or []
    return status.get("phase") == "Running" and bool(main) and all(c.get("ready") for c in main)


def event_time(event: Object) -> str:
    """Time of an event's last occurrence, as RFC 3339 text that sorts by time to the second; empty if unknown."""
    series = event.get("series") or {}
    for value in (series.get("lastObservedTime"), event.get("lastTimestamp"), event.get("eventTime")):
        if value:
            return str(value)[:19]
    return str((event.get("metadata") or {}).get("creationTimestamp") or event.get("firstTimestamp") or "")[:19]


def in_order(events: Iterable[Object]) -> list[Object]:
    return sorted(events, key=event_time)


def target(event: Object) -> str:
    """``kind namespace/name`` of the object that an event is about."""
    kind, space, item = _about(event)
    return f"{kind} {space}/{item}" if space else f"{kind} {item}"


def message(item: Object) -> str:
    return shorten(str(item.get("message") or item.get("note") or ""), 400)


def shorten(text: str, most: int) -> str:
    """``text`` on one line, shortened in the middle to ``most`` characters: both ends of an error matter."""
    flat = " ".join(text.split())
    if len(flat) <= most:
        return flat
    half = (most - 3) // 2
    return f"{flat[:half]} … {flat[-half:]}"


def _about(event: Object) -> tuple[str, str, str]:
    about = event.get("involvedObject") or event.get("regarding") or {}
    return str(about.get("kind", "")), str(about.get("namespace", "")), str(about.get("name", ""))
