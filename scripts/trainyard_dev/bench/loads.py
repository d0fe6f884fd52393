"""Loads of the throughput bench: equal nodes, and pods alone or in gangs, in the form that each scheduler needs."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from trainyard.errors import UsageError
from trainyard_dev.bench import objects, traces
from trainyard_dev.bench.traces import Node, Pod

# A node holds 16 of these pods by every resource, so that 1,000 nodes hold 10,000 pods with room to choose.
NODE_CPU, NODE_MEMORY, NODE_GPUS = 128_000, 1024 * 1024, 16
POD_CPU, POD_MEMORY = 8_000, 64 * 1024
# Smaller for openb, whose nodes differ: the GPUs run out first there.
OPENB_CPU, OPENB_MEMORY = 2_000, 8 * 1024
CASE = re.compile(
    r"(?P<kind>gangs|single|bulk|vcjobs|bare)-(?P<jobs>\d+)x(?P<size>\d+)@(?P<nodes>\d+|openb)(?P<held>\+backlog)?"
)


@dataclass(frozen=True)
class Load:
    """`jobs` times `size` pods on so many nodes.

    `kind`: who makes PodGroups for Volcano. gangs, single and bulk: the harness, of `size` pods each, all of them
    needed at once (gangs, single) or none (bulk); bare: vc-controller-manager, one for each pod;
    vcjobs: vc-controller-manager makes the pods and PodGroups of Volcano Jobs.
    `backlog`: the scheduler is paused until everything is made.
    """

    kind: str
    jobs: int
    size: int
    nodes: str
    backlog: bool = False

    @property
    def pods(self) -> int:
        """Number of pods in all."""
        return self.jobs * self.size

    @property
    def controllers(self) -> bool:
        """Whether vc-controller-manager has to run."""
        return self.kind in ("vcjobs", "bare")


def load(case: str) -> Load:
    """The load of this name. Raises UsageError."""
    found = CASE.fullmatch(case)
    if not found:
        raise UsageError(
            f"unknown load {case}",
            hint="write KIND-JOBSxSIZE@NODES: gangs, single, bulk, vcjobs or bare; NODES a number or openb",
        )
    return Load(found["kind"], int(found["jobs"]), int(found["size"]), found["nodes"], bool(found["held"]))


def nodes(asked: Load) -> list[Node]:
    """The nodes of a load."""
    if asked.nodes == "openb":
        return traces.openb_nodes()
    return [Node(f"n{index:05d}", NODE_CPU, NODE_MEMORY, NODE_GPUS) for index in range(int(asked.nodes))]


def made(asked: Load, scheduler: str) -> list[dict[str, Any]]:
    """All objects in order of creation: a job's PodGroup, where it has one, before its pods."""
    if asked.kind == "vcjobs" and scheduler == "volcano":
        return [_vcjob(f"j{index:05d}", asked) for index in range(asked.jobs)]
    found, scheduler = [], "kube" if scheduler == "raw" else scheduler
    grouped = scheduler == "volcano" and asked.kind != "bare"
    for index in range(asked.jobs):
        name = f"j{index:05d}"
        if grouped:
            found.append(objects.pod_group(name, 1 if asked.kind == "bulk" else asked.size))
        pods = (_pod(f"{name}-{number:04d}", asked) for number in range(asked.size))
        group = name if grouped or scheduler == "kueue" else ""
        found += [objects.pod(one, scheduler, group=group, of=asked.size) for one in pods]
    return found


def names(wanted: Sequence[dict[str, Any]]) -> list[str]:
    """Names of the pods among the objects."""
    return [obj["metadata"]["name"] for obj in wanted if obj["kind"] == "Pod"]


def _pod(name: str, asked: Load) -> Pod:
    if asked.nodes == "openb":
        return Pod(name, OPENB_CPU, OPENB_MEMORY, gpus=1)
    return Pod(name, POD_CPU, POD_MEMORY, gpus=1)


def _vcjob(name: str, asked: Load) -> dict[str, Any]:
    pod = objects.pod(_pod(name, asked), "volcano")
    spec = pod["spec"] | {"restartPolicy": "Never"}
    task = {"name": "worker", "replicas": asked.size, "template": {"spec": spec}}
    job = {"schedulerName": "volcano", "minAvailable": asked.size, "queue": "default", "tasks": [task]}
    meta = {"name": name, "namespace": "default"}
    return {"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job", "metadata": meta, "spec": job}
