"""An upper bound on the GPUs that can be allocated."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from trainyard.errors import TrainyardError
from trainyard_dev.bench.traces import MOST_PODS, Node, Pod

CUTS = 8  # for k up to this: at most k pods, each larger than 1/(k+1) of a node, share that node
Kind = tuple[int, int, int]  # GPUs, thousandths of a core, MiB


def most_gpus(nodes: Sequence[Node], pods: Sequence[Pod]) -> float:
    """Return an upper bound on the whole GPUs that any placement of these pods allocates, even if known in advance.

    A linear programme: how many pods of each kind run on nodes of each kind. Pods are only partly kept undivided:
    of pods larger than 1/(k+1) of a node's GPUs, cores or memory at most k run on it.
    """
    from scipy.optimize import linprog
    from scipy.sparse import csr_matrix

    hosts = Counter(replace(node, name="") for node in nodes)
    wanted = Counter(replace(pod, name="") for pod in pods)
    pairs = [(pod, host) for pod in wanted for host in hosts if suits(pod, host)]
    rows: dict[Any, int] = {}
    limits: list[float] = []
    cells: list[tuple[float, int, int]] = []

    def term(limit: float, row: Any, weight: float, pair: int) -> None:
        if row not in rows:
            rows[row] = len(limits)
            limits.append(limit)
        cells.append((weight, rows[row], pair))

    for index, (pod, host) in enumerate(pairs):
        term(wanted[pod], pod, 1, index)
        term(MOST_PODS * hosts[host], (host, "pods"), 1, index)
        for place, (asked, room) in enumerate(zip(size(pod), size(host), strict=True)):
            if not asked:
                continue
            term(hosts[host], (host, place), asked / room, index)
            for k in range(1, CUTS + 1):
                if weight := (asked * (k + 1) - 1) // room:  # how many times it is larger than 1/(k+1)
                    term(k * hosts[host], (host, place, k), weight, index)
    if not pairs:
        return 0.0
    weights, at, of = zip(*cells, strict=True)
    table = csr_matrix((weights, (at, of)), shape=(len(limits), len(pairs)))
    found = linprog([-pod.gpus for pod, _ in pairs], A_ub=table, b_ub=limits, method="highs")
    if not found.success:
        raise TrainyardError(f"the bound of a packing was not found: {found.message}")
    return float(-found.fun)


def size(one: Node | Pod) -> Kind:
    """The resources that the node has, or that the pod requests."""
    return one.gpus, one.cpu_milli, one.memory_mib


def suits(pod: Pod, node: Node) -> bool:
    """Whether the pod could run there if the node were empty."""
    return all(asked <= room for asked, room in zip(size(pod), size(node), strict=True)) and (
        not pod.models or node.model in pod.models
    )
