"""Gangs of a team's namespace, as Volcano's PodGroups tell: which wait, in which order, and why."""

from collections.abc import Iterable, Mapping
from typing import Any

from trainyard.kube.client import Kube, KubeError
from trainyard.names import GANG

PODGROUPS = "scheduling.volcano.sh/v1beta1"
WAITING = ("Pending", "Inqueue", "")
TO_COME = ("Pending", "")  # phases of pods that have no place

Object = dict[str, Any]


def listed(kube: Kube, version: str, resource: str, **query: str) -> list[Object]:
    """Objects of the namespace: none where one may not see them, or the site has no such kind."""
    try:
        return kube.list(kube.path(version, resource), **query)
    except KubeError as error:
        if error.status in (403, 404):
            return []
        raise


def priorities(kube: Kube) -> dict[str, int]:
    """Priority classes with their values; none where one may not see them."""
    try:
        found = kube.list(kube.path("scheduling.k8s.io/v1", "priorityclasses", namespace=""))
    except KubeError:
        return {}
    return {one["metadata"]["name"]: int(one.get("value", 0)) for one in found}


def waits(group: Object) -> bool:
    """Whether it has no place."""
    return phase(group) in WAITING


def waiting(groups: Iterable[Object], pods: Iterable[Object]) -> list[Object]:
    """Those that wait for their pods' sake: Volcano leaves a gang as it was when its pods have gone, and a run's gang
    until the run is deleted."""
    coming: dict[str, bool] = {}  # by gang: whether one of its pods has no place yet
    for pod in pods:
        coming[group_of(pod)] = coming.get(group_of(pod), False) or phase(pod) in TO_COME

    def has_pods_to_come(group: Object) -> bool:
        return coming.get(group["metadata"]["name"], owner(group).get("kind") != "Workflow")

    return [group for group in groups if waits(group) and has_pods_to_come(group)]


def line(groups: Iterable[Object], queue: str, values: Mapping[str, int]) -> list[str]:
    """Names of gangs in the order in which they are looked at; `values` are those of priority classes."""
    own = [group for group in groups if queue_of(group) == queue]
    own.sort(key=lambda group: (-priority(group, values), group["metadata"]["creationTimestamp"]))
    return [group["metadata"]["name"] for group in own]


def position(groups: Iterable[Object], group: Object, values: Mapping[str, int]) -> tuple[int, int]:
    """A gang's place among those that wait in its queue, from 1, and how many these are; 0 for one that doesn't."""
    names = line(groups, queue_of(group), values)
    name = group["metadata"]["name"]
    return (names.index(name) + 1 if name in names else 0), len(names)


def queue_of(group: Object) -> str:
    """The queue it waits in."""
    return str((group.get("spec") or {}).get("queue", "default"))


def priority(group: Object, values: Mapping[str, int]) -> int:
    """The value of its priority class."""
    return values.get((group.get("spec") or {}).get("priorityClassName", ""), 0)


def owner(group: Object) -> Object:
    """What it was made for; {} where nothing says so."""
    return next(iter(group["metadata"].get("ownerReferences") or []), {})


def group_of(pod: Object) -> str:
    """Name of a pod's gang."""
    return str((pod["metadata"].get("annotations") or {}).get(GANG, ""))


def reason(group: Object) -> str:
    """The scheduler's last word on why it waits."""
    for condition in reversed((group.get("status") or {}).get("conditions") or []):
        if condition.get("type") == "Unschedulable" and condition.get("status") == "True":
            return " ".join(str(condition.get("message", "")).split()).rsplit("Origin reason is ", 1)[-1]
    return ""


def phase(obj: Object) -> str:
    """Of a gang or of a pod."""
    return str((obj.get("status") or {}).get("phase") or "")
