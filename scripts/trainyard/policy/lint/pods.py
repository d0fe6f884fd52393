"""Pods of an object: the paths of their templates, their number, and their resources."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from trainyard.kinds import registry
from trainyard.policy import cel

Path = tuple[str | int, ...]
Object = dict[str, Any]
REPLICA_KEYS = tuple(kind.replicas for kind in registry.KINDS if kind.replicas)
CONTAINERS = ("initContainers", "containers")


@dataclass(frozen=True)
class Pod:
    """One pod template. `path` is its path in the object; `role`: its name in the job.

    `repeated`: whether it is a YAML alias of an earlier pod, so that the file has its mistakes only once.
    """

    spec: Object
    path: Path
    meta: Object = field(default_factory=dict)
    count: int = 1
    role: str = ""
    repeated: bool = False

    @property
    def spec_path(self) -> Path:
        """Path of the pod's spec in the file."""
        return cel.path(self.spec) or (*self.path, "spec")

    def containers(self) -> Iterator[tuple[Object, Path]]:
        """Init containers and containers with their paths."""
        for key in CONTAINERS:
            for index, one in enumerate(self.spec.get(key) or []):
                if isinstance(one, dict):
                    yield one, cel.path(one) or (*self.spec_path, key, index)

    def amount(self, resource: str) -> float:
        """Request of one pod: the sum of its containers, or the largest init container."""
        sums = {
            key: [asked(one, resource) for one in self.spec.get(key) or [] if isinstance(one, dict)]
            for key in CONTAINERS
        }
        return max(sum(sums["containers"]), *sums["initContainers"], 0)

    def gpus(self, resources: tuple[str, ...]) -> float:
        """GPUs of any of these resources that one pod requests."""
        return sum(self.amount(resource) for resource in resources)


def distinct(pods: list[Pod]) -> list[Pod]:
    """The pods except those that repeat an earlier one. Equal pods that are written twice are both included."""
    return [pod for pod in pods if not pod.repeated]


def repeated(obj: Object) -> frozenset[Path]:
    """Paths of pod templates that are YAML aliases of an earlier one, in an object as read."""
    seen: set[int] = set()
    found = set()
    for pod in pods(obj):
        if id(pod.spec) in seen:
            found.add(pod.path)
        seen.add(id(pod.spec))
    return frozenset(found)


def asked(container: Object, resource: str) -> float:
    """Request of a container, else its limit; 0 if neither is set or it is invalid."""
    resources = container.get("resources") or {}
    for key in ("requests", "limits"):
        value = (resources.get(key) or {}).get(resource)
        if value is not None:
            return cel.number(value) or 0
    return 0


def pods(obj: Object) -> list[Pod]:
    """All pod templates of an object of a known kind; for those of an Argo workflow see `workflow`."""
    spec, kind = obj.get("spec"), obj.get("kind")
    if not isinstance(spec, dict):
        return []
    if kind == "Pod":
        return [Pod(spec, (), mapping(obj.get("metadata")))]
    if kind == "CronJob":
        job = mapping(mapping(spec.get("jobTemplate")).get("spec"))
        return _one(job, ("spec", "jobTemplate", "spec"), job.get("parallelism", 1))
    if isinstance(spec.get("template"), dict):
        return _one(spec, ("spec",), spec.get("replicas", spec.get("parallelism", 1)))
    if isinstance(spec.get("tasks"), list):
        found = []
        for index, task in enumerate(spec["tasks"]):
            named = str(mapping(task).get("name", f"task {index}"))
            found += _one(mapping(task), ("spec", "tasks", index), mapping(task).get("replicas", 1), named)
        return found
    found = []
    for key in REPLICA_KEYS:
        for role, replica in mapping(spec.get(key)).items():
            found += _one(mapping(replica), ("spec", key, role), mapping(replica).get("replicas", 1), role)
    return found


def _one(holder: Object, path: Path, count: Any, role: str = "") -> list[Pod]:
    template = holder.get("template")
    if not isinstance(template, dict) or not isinstance(template.get("spec"), dict):
        return []
    times = count if isinstance(count, int) else 1
    return [Pod(template["spec"], (*path, "template"), mapping(template.get("metadata")), times, role)]


def mapping(value: Any) -> Object:
    """The value, if it is a mapping; else {}."""
    return value if isinstance(value, dict) else {}
