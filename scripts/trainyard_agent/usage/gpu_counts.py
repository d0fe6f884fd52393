"""The view of a cluster's GPUs that teams may see: numbers by pool and model, and the waiting times.

The result names no node, and no team except the one that it is for.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from statistics import median
from typing import Any

from trainyard_agent import quantity

Object = dict[str, Any]
SCHEMA = "trainyard.io/gpus/v1"
PRODUCT, MEMORY = "nvidia.com/gpu.product", "nvidia.com/gpu.memory"
GANG = "scheduling.k8s.io/group-name"
WAITING = ("Pending", "Inqueue", "")
LATELY = timedelta(hours=1)
Place = tuple[str, str, str]  # pool, model, resource


@dataclass(frozen=True)
class Node:
    """A node's GPUs of one resource. `capacity` includes broken ones, `allocatable` does not."""

    place: Place
    capacity: int
    allocatable: int
    usable: bool
    memory_mib: int = 0


@dataclass(frozen=True)
class Pod:
    """A pod's requests, its creation and its scheduling time; `node` is "" before that."""

    namespace: str
    node: str
    gpus: Mapping[str, int]
    gang: str
    over: bool
    created: datetime | None
    placed: datetime | None


@dataclass(frozen=True)
class Gang:
    """A PodGroup. `gpus`: the fewest that it needs, by Volcano's count."""

    namespace: str
    name: str
    queue: str
    waits: bool
    of_workflow: bool
    gpus: int
    created: datetime | None


@dataclass
class Cluster:
    """Everything that is counted. `nodes` are by name, without those that have no GPUs."""

    nodes: dict[str, list[Node]] = field(default_factory=dict)
    pods: list[Pod] = field(default_factory=list)
    gangs: list[Gang] = field(default_factory=list)


def resources(pools: Iterable[Object]) -> tuple[str, ...]:
    """Resource names of GPUs in the contract's pools."""
    return tuple(dict.fromkeys(pool["gpu"]["resource"] for pool in pools if pool.get("kind") == "gpu"))


def nodes(obj: Object, pools: list[Object]) -> list[Node]:
    """A node's GPUs, one entry for each GPU resource that it has."""
    labels, status, spec = obj["metadata"].get("labels") or {}, obj.get("status") or {}, obj.get("spec") or {}
    ready = any(one.get("type") == "Ready" and one.get("status") == "True" for one in status.get("conditions") or [])
    found = []
    for resource in resources(pools):
        capacity = amount((status.get("capacity") or {}).get(resource))
        if capacity:
            pool = _pool(labels, pools, resource)
            model = labels.get(PRODUCT) or str((pool.get("gpu") or {}).get("model") or "")
            allocatable = min(capacity, amount((status.get("allocatable") or {}).get(resource)))
            usable = ready and not spec.get("unschedulable")
            memory = amount(labels.get(MEMORY))
            found.append(Node((pool.get("name", ""), model, resource), capacity, allocatable, usable, memory))
    return found


def pod(obj: Object, asked: tuple[str, ...]) -> Pod | None:
    """A pod that requests GPUs, or None. Raises one of api.MALFORMED."""
    found = any_pod(obj, asked)
    return found if found.gpus else None


def any_pod(obj: Object, asked: tuple[str, ...]) -> Pod:
    """A pod, even one without GPUs. Raises one of api.MALFORMED."""
    spec, status, meta = obj["spec"], obj.get("status") or {}, obj["metadata"]
    gpus = {resource: count for resource in asked if (count := asks(spec, resource))}
    placed: Object = next((one for one in status.get("conditions") or [] if one.get("type") == "PodScheduled"), {})
    return Pod(
        namespace=meta["namespace"],
        node=spec.get("nodeName") or "",
        gpus=gpus,
        gang=str((meta.get("annotations") or {}).get(GANG, "")),
        over=status.get("phase") in ("Succeeded", "Failed"),
        created=time(meta.get("creationTimestamp")),
        placed=time(placed.get("lastTransitionTime")) if placed.get("status") == "True" else None,
    )


def gang(obj: Object, asked: tuple[str, ...]) -> Gang:
    """A PodGroup. Raises one of api.MALFORMED."""
    meta, spec = obj["metadata"], obj.get("spec") or {}
    least = spec.get("minResources") or {}
    return Gang(
        namespace=meta["namespace"],
        name=meta["name"],
        queue=str(spec.get("queue") or ""),
        waits=((obj.get("status") or {}).get("phase") or "") in WAITING,
        of_workflow=any(one.get("kind") == "Workflow" for one in meta.get("ownerReferences") or []),
        gpus=sum(amount(least.get(resource)) for resource in asked),
        created=time(meta.get("creationTimestamp")),
    )


def shared(cluster: Cluster, pools: list[Object]) -> Object:
    """The view for everyone: GPUs by pool and model, and how many are requested in all queues together."""
    held = held_by(cluster)
    rows: dict[Place, Object] = {(one["name"], "", one["gpu"]["resource"]): {} for one in pools if one["kind"] == "gpu"}
    for name, parts in cluster.nodes.items():
        for node in parts:
            row = rows.setdefault(node.place, {})
            _add(row, node, held[name, node.place[2]])
    with_nodes = {(pool, resource) for (pool, _, resource), row in rows.items() if row}
    listed = [
        {"pool": pool, "model": model, "resource": resource, **(row or _empty())}
        for (pool, model, resource), row in rows.items()
        if row or (pool, resource) not in with_nodes
    ]
    order = {one["name"]: at for at, one in enumerate(pools)}
    listed.sort(key=lambda row: (order.get(str(row["pool"]), len(order)), row["model"], row["resource"]))
    waiting = [(gang, gpus) for gang, gpus in waiting_gangs(cluster) if gpus]
    return {"pools": listed, "waiting": {"jobs": len(waiting), "gpus": sum(gpus for _, gpus in waiting)}}


def of_team(cluster: Cluster, team: str, queues: Iterable[str], now: datetime) -> Object:
    """The additional view of one team: the GPUs that it holds, and the wait before each of its queues."""
    held: Counter[tuple[str, str]] = Counter()
    for pod in cluster.pods:
        if pod.namespace == team and pod.node and not pod.over:
            for node in cluster.nodes.get(pod.node, []):
                held[node.place[:2]] += pod.gpus.get(node.place[2], 0)
    waiting, started = waiting_gangs(cluster), _started(cluster, now)
    return {
        "held": [{"pool": pool, "model": model, "gpus": gpus} for (pool, model), gpus in sorted(held.items()) if gpus],
        "queues": [_queue(name, waiting, started.get(name, [])) for name in queues],
    }


def _queue(name: str, waiting: list[tuple[Gang, int]], started: list[float]) -> Object:
    own = [(gang, gpus) for gang, gpus in waiting if gang.queue == name and gpus]
    oldest = min((gang.created for gang, _ in own if gang.created), default=None)
    found: Object = {
        "queue": name,
        "waiting": {"jobs": len(own), "gpus": sum(gpus for _, gpus in own), "since": stamp(oldest)},
        "started": {"jobs": len(started), "withinSeconds": int(LATELY.total_seconds())},
    }
    if started:
        found["started"] |= {"medianSeconds": round(median(started)), "longestSeconds": round(max(started))}
    return found


def _add(row: Object, node: Node, held: int) -> None:
    if not row:
        row.update(_empty())
    free = max(0, node.allocatable - held) if node.usable else 0
    row["nodes"] += 1
    row["gpus"] += node.capacity
    row["held"] += held
    row["free"] += free
    row["out"] += max(0, node.capacity - held - free)
    row["memoryMiB"] = max(row["memoryMiB"], node.memory_mib)
    if free:
        row["fits"][str(free)] = row["fits"].get(str(free), 0) + 1


def _empty() -> Object:
    """An empty entry. `out`: GPUs that nobody can use now; `fits`: how many nodes have that many free."""
    return {"nodes": 0, "gpus": 0, "held": 0, "free": 0, "out": 0, "memoryMiB": 0, "fits": {}}


def held_by(cluster: Cluster) -> Counter[tuple[str, str]]:
    """GPUs that pods hold, by node and resource."""
    found: Counter[tuple[str, str]] = Counter()
    for pod in cluster.pods:
        if pod.node and not pod.over:
            for resource, count in pod.gpus.items():
                found[pod.node, resource] += count
    return found


def waiting_gangs(cluster: Cluster) -> list[tuple[Gang, int]]:
    """Unscheduled gangs, and the GPUs that they request.

    Volcano leaves a gang unchanged when its pods have gone, and a run's gang until the run is deleted.
    """
    coming: dict[tuple[str, str], list[Pod]] = {}
    for pod in cluster.pods:
        coming.setdefault((pod.namespace, pod.gang), []).append(pod)
    found = []
    for gang in cluster.gangs:
        pods = coming.get((gang.namespace, gang.name))
        to_come = [pod for pod in pods or [] if not pod.node and not pod.over]
        if gang.waits and (to_come or (pods is None and not gang.of_workflow)):
            found.append((gang, sum(sum(pod.gpus.values()) for pod in to_come) or gang.gpus))
    return found


def _started(cluster: Cluster, now: datetime) -> dict[str, list[float]]:
    """Waits in seconds, by queue, of gangs that were scheduled recently and still have pods."""
    known = {(one.namespace, one.name): one for one in cluster.gangs}
    last: dict[tuple[str, str], datetime] = {}
    for pod in cluster.pods:
        key = (pod.namespace, pod.gang)
        if pod.placed and key in known:
            last[key] = max(pod.placed, last.get(key, pod.placed))
    found: dict[str, list[float]] = {}
    for key, placed in last.items():
        gang = known[key]
        if gang.created and not gang.waits and placed > now - LATELY:
            found.setdefault(gang.queue, []).append(max(0.0, (placed - gang.created).total_seconds()))
    return found


def _pool(labels: Object, pools: list[Object], resource: str) -> Object:
    """The pool whose labels the node has; {} without one."""
    for pool in pools:
        if pool.get("kind") != "gpu" or pool["gpu"]["resource"] != resource:
            continue
        wanted = pool.get("labels") or {}
        if wanted and all(labels.get(key) == str(value) for key, value in wanted.items()):
            return pool
    return {}


def asks(spec: Object, resource: str) -> int:
    """GPUs of a pod: its containers and sidecars, or the largest init container that runs before."""
    beside, before = 0, 0
    for one in spec.get("initContainers") or []:
        count = _of_container(one, resource)
        if one.get("restartPolicy") == "Always":
            beside += count
        else:
            before = max(before, beside + count)
    return max(before, beside + sum(_of_container(one, resource) for one in spec.get("containers") or []))


def _of_container(container: Object, resource: str) -> int:
    given = container.get("resources") or {}
    return amount((given.get("requests") or {}).get(resource) or (given.get("limits") or {}).get(resource))


def amount(text: object) -> int:
    """A Kubernetes quantity as a count; 0 if it is missing or invalid."""
    try:
        return max(0, int(quantity.number(text or 0)))
    except ValueError:
        return 0


def time(text: object) -> datetime | None:
    """A Kubernetes time; None if it is missing. Raises ValueError."""
    if not text:
        return None
    found = datetime.fromisoformat(str(text))
    return found if found.tzinfo else found.replace(tzinfo=UTC)


def stamp(at: datetime | None) -> str:
    """A time in Kubernetes' format; "" for None."""
    return at.astimezone(UTC).isoformat(timespec="seconds").replace("+00:00", "Z") if at else ""
