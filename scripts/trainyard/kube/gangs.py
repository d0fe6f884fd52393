"""Gangs of a team's namespace, from Volcano's PodGroups: which of them wait, in which order, and why."""

from collections.abc import Iterable, Mapping
from typing import Any

from trainyard.kube.client import Kube, KubeError
from trainyard.names import GANG

PODGROUPS = "scheduling.volcano.sh/v1beta1"
WAITING = ("Pending", "Inqueue", "")
TO_COME = ("Pending", "")  # phases of pods that are not scheduled

Object = dict[str, Any]


def listed(kube: Kube, version: str, resource: str, **query: str) -> list[Object]:
    """Objects of the namespace; empty if the user may not list them, or the site lacks the kind."""
    try:
        return kube.list(kube.path(version, resource), **query)
    except KubeError as error:
        if error.status in (403, 404):
            return []
        raise


def priorities(kube: Kube) -> dict[str, int]:
    """Values of the priority classes, by name; empty if the user may not list them."""
    try:
        found = kube.list(kube.path("scheduling.k8s.io/v1", "priorityclasses", namespace=""))
    except KubeError:
        return {}
    return {one["metadata"]["name"]: int(one.get("value", 0)) for one in found}


def waits(group: Object) -> bool:
    """Whether the gang is not scheduled."""
    return phase(group) in WAITING


def waiting(groups: Iterable[Object], pods: Iterable[Object]) -> list[Object]:
    """The waiting gangs, except those whose pods are gone: Volcano doesn't update their phase, and a run's gang stays
    until the run is deleted."""
    coming: dict[str, bool] = {}  # by gang: whether one of its pods is not scheduled yet
    for pod in pods:
        coming[group_of(pod)] = coming.get(group_of(pod), False) or phase(pod) in TO_COME

    def has_pods_to_come(group: Object) -> bool:
        return coming.get(group["metadata"]["name"], owner(group).get("kind") != "Workflow")

    return [group for group in groups if waits(group) and has_pods_to_come(group)]


def line(groups: Iterable[Object], queue: str, values: Mapping[str, int]) -> list[str]:
    """Names of the queue's gangs in scheduling order; `values` are the values of priority classes."""
    own = [group for group in groups if queue_of(group) == queue]
    own.sort(key=lambda group: (-priority(group, values), group["metadata"]["creationTimestamp"]))
    return [group["metadata"]["name"] for group in own]


def position(groups: Iterable[Object], group: Object, values: Mapping[str, int]) -> tuple[int, int]:
    """A gang's position among the waiting gangs of its queue, from 1, and their number; 0 if the gang doesn't wait."""
    names = line(groups, queue_of(group), values)
    name = group["metadata"]["name"]
    return (names.index(name) + 1 if name in names else 0), len(names)


def queue_of(group: Object) -> str:
    """Name of the gang's queue."""
    return str((group.get("spec") or {}).get("queue", "default"))


def priority(group: Object, values: Mapping[str, int]) -> int:
    """Value of the gang's priority class."""
    return values.get((group.get("spec") or {}).get("priorityClassName", ""), 0)


def owner(group: Object) -> Object:
    """The gang's owner reference; {} if it has none."""
    return next(iter(group["metadata"].get("ownerReferences") or []), {})


def group_of(pod: Object) -> str:
    """Name of a pod's gang."""
    return str((pod["metadata"].get("annotations") or {}).get(GANG, ""))


def reason(group: Object) -> str:
    """The scheduler's latest message on why the gang waits."""
    for condition in reversed((group.get("status") or {}).get("conditions") or []):
        if condition.get("type") == "Unschedulable" and condition.get("status") == "True":
            return " ".join(str(condition.get("message", "")).split()).rsplit("Origin reason is ", 1)[-1]
    return ""


def phase(obj: Object) -> str:
    """Phase of a gang or pod."""
    return str((obj.get("status") or {}).get("phase") or "")
