"""A packer that sees all pods beforehand, to see how near to a packing's bound one can come."""

from collections.abc import Sequence
from dataclasses import replace

from trainyard_dev.bench.bounds import size, suits
from trainyard_dev.bench.traces import MOST_PODS, Node, Pod


def pack(nodes: Sequence[Node], pods: Sequence[Pod]) -> list[str]:
    """The node of each pod, "" for none: one node after the other is filled.

    Nodes with the fewest cores per GPU come first. Each gets large pods before small ones, and among pods of one size
    the one whose cores best match those left for its GPUs. Pods without GPUs come last.
    """
    waiting: dict[Pod, list[int]] = {}
    for index, pod in enumerate(pods):
        waiting.setdefault(replace(pod, name=""), []).append(index)
    placed = [""] * len(pods)
    rooms = {node.name: [*size(node), MOST_PODS] for node in nodes}

    def take(node: Node, kinds: Sequence[Pod]) -> bool:
        """Puts one pod on the node, of the most GPUs, then of the cores that fit best."""
        room = rooms[node.name]
        fitting = [pod for pod in kinds if waiting[pod] and room[3] and suits(pod, _left(node, room))]
        if not fitting:
            return False
        each = room[1] / max(1, room[0])
        best = min(
            fitting,
            key=lambda pod: (
                -pod.gpus,
                pod.cpu_milli > each * pod.gpus,
                abs(pod.cpu_milli / max(1, pod.gpus) - each),
                pod.memory_mib,
            ),
        )
        placed[waiting[best].pop()] = node.name
        room[:] = [have - gone for have, gone in zip(room, (*size(best), 1), strict=True)]
        return True

    for kinds in ([pod for pod in waiting if pod.gpus], [pod for pod in waiting if not pod.gpus]):
        for node in sorted(nodes, key=lambda one: rooms[one.name][1] / max(1, one.gpus)):
            while take(node, kinds):
                pass
    return placed


def _left(node: Node, room: Sequence[int]) -> Node:
    return replace(node, gpus=room[0], cpu_milli=room[1], memory_mib=room[2])
