"""Published traces as nodes, pods and jobs: Alibaba's openb (2023) and Microsoft's Philly as Muri prepared it."""

import csv
import random
from collections.abc import Sequence
from dataclasses import dataclass, replace

from trainyard_dev.bench.sources import trace

WHOLE = "1000"  # thousandths of a GPU: pods that request less are left out
MOST_PODS = 110  # on a node, as kubelet sets it


@dataclass(frozen=True)
class Node:
    """The resources of one node: thousandths of a core, MiB, whole GPUs and their model."""

    name: str
    cpu_milli: int
    memory_mib: int
    gpus: int = 0
    model: str = ""


@dataclass(frozen=True)
class Pod:
    """The requests of one pod. `models`: the GPU models it accepts, () for any."""

    name: str
    cpu_milli: int
    memory_mib: int
    gpus: int = 0
    models: tuple[str, ...] = ()


@dataclass(frozen=True)
class Job:
    """One training job: `gpus` all or none, submitted at `submit_s`, for `duration_s` (virtual seconds)."""

    name: str
    gpus: int
    submit_s: float
    duration_s: float


def openb_nodes(share: float = 1.0) -> list[Node]:
    """The cluster's 1,523 nodes, or an even `share` of each kind of them."""
    rows = _rows("openb", "openb_node_list_all_node.csv")
    nodes = [
        Node(
            row["sn"].removeprefix("openb-"),
            int(row["cpu_milli"]),
            int(row["memory_mib"]),
            int(row["gpu"]),
            row["model"],
        )
        for row in rows
    ]
    if share >= 1:
        return nodes
    alike: dict[tuple[int, int, int, str], list[Node]] = {}
    for node in nodes:
        alike.setdefault((node.cpu_milli, node.memory_mib, node.gpus, node.model), []).append(node)
    kept: set[str] = set()
    owed = 0.0  # carried from kind to kind, so that small kinds are not all rounded away
    for group in alike.values():
        owed += len(group) * share
        kept.update(node.name for node in group[: int(owed)])
        owed -= int(owed)
    return [node for node in nodes if node.name in kept]


def openb_pods(name: str) -> list[Pod]:
    """The pods of the list `name` (default, multigpu20, gpuspec33, …) that request whole GPUs or none."""
    return [
        Pod(row["name"], int(row["cpu_milli"]), int(row["memory_mib"]), int(row["num_gpu"]),
            tuple(filter(None, (row.get("gpu_spec") or "").split("|"))))
        for row in _rows("openb", f"openb_pod_list_{name}.csv")
        if row["num_gpu"] == "0" or row["gpu_milli"] == WHOLE
    ]  # fmt: skip


def workload(name: str, seed: int, nodes: Sequence[Node], *, demand: float = 1.3) -> list[Pod]:
    """Pods of a list, cloned or dropped at random until they request `demand` times the nodes' GPUs, in random order.

    Names are numbered in order of arrival.
    """
    rng = random.Random(f"{name}/{seed}")
    pods = openb_pods(name)
    wanted = demand * sum(node.gpus for node in nodes)
    rng.shuffle(pods)
    taken: list[Pod] = []
    asked = 0
    rest = list(pods)
    while asked < wanted:
        if not rest:
            rest = list(pods)
            rng.shuffle(rest)
        pod = rest.pop()
        taken.append(pod)
        asked += pod.gpus
    rng.shuffle(taken)
    return [replace(pod, name=f"p{index:05d}") for index, pod in enumerate(taken)]


def philly(name: str, count: int | None = None) -> list[Job]:
    """The first `count` jobs of trace1, trace1_pr, trace3 or trace3_pr by time of submission; times start at 0."""
    rows = sorted(_rows("philly", f"{name}.csv"), key=lambda row: (int(row["submit_time"]), int(row["job_id"])))[:count]
    return [
        Job(f"j{index:05d}", int(row["num_gpu"]), int(row["submit_time"]) / 1000, int(row["duration"]) / 1000)
        for index, row in enumerate(rows)
    ]


def _rows(folder: str, file: str) -> list[dict[str, str]]:
    with trace(f"{folder}/{file}").open(newline="") as text:
        return list(csv.DictReader(text))
