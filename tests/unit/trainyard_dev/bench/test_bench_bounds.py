"""Bounds on the GPUs that can be allocated: that they hold, and where they are tight."""

import itertools
import random

import pytest
from offline_packer import pack

from trainyard_dev.bench import bounds
from trainyard_dev.bench.traces import Node, Pod

BIG = Node("big", 96000, 1000, 8, "G2")


def pods(count: int, gpus: int, cores: int, memory: int = 1, models: tuple[str, ...] = ()) -> list[Pod]:
    """Equal pods."""
    return [Pod(f"p{gpus}-{cores}-{index}", cores * 1000, memory, gpus, models=models) for index in range(count)]


@pytest.mark.parametrize(
    ("wanted", "gpus"),
    [
        (pods(3, 1, 1), 3),
        (pods(20, 1, 1), 16),
        (pods(20, 1, 48), 4),  # two on each node: no cores for more
        (pods(20, 1, 40), 4),  # two on each node, though the cores of both nodes would do for a fifth half
        (pods(20, 1, 1, 400), 4),
        (pods(20, 1, 97), 0),
        (pods(3, 8, 8), 16),
        (pods(20, 1, 1, models=("T4",)), 0),
        (pods(1, 8, 8) + pods(3, 4, 1) + pods(9, 0, 90), 16),
        ([], 0),
    ],
)
def test_the_bound_of_two_nodes(wanted: list[Pod], gpus: int) -> None:
    assert bounds.most_gpus([BIG, Node("other", 96000, 1000, 8, "G2")], wanted) == pytest.approx(gpus)


def test_nodes_take_so_many_pods_and_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bounds, "MOST_PODS", 5)
    assert bounds.most_gpus([BIG], pods(8, 1, 1)) == pytest.approx(5)


def _best(nodes: list[Node], wanted: list[Pod]) -> int:
    """By trying everything."""
    found = 0
    for choice in itertools.product(range(len(nodes) + 1), repeat=len(wanted)):
        rooms = [list(bounds.size(node)) for node in nodes] + [[10**9] * 3]
        for pod, place in zip(wanted, choice, strict=True):
            rooms[place] = [have - asked for have, asked in zip(rooms[place], bounds.size(pod), strict=True)]
        if min(map(min, rooms)) >= 0:
            placed = [pod.gpus for pod, place in zip(wanted, choice, strict=True) if place < len(nodes)]
            found = max(found, sum(placed))
    return found


@pytest.mark.parametrize("seed", range(20))
def test_no_placement_beats_the_bound(seed: int) -> None:
    rng = random.Random(seed)
    nodes = [Node(f"n{index}", rng.choice([8000, 16000, 30000]), 100, rng.choice([2, 4])) for index in range(2)]
    wanted = [
        Pod(f"p{index}", rng.randint(1, 12) * 1000, rng.randint(1, 60), rng.choice([0, 1, 1, 2, 3]))
        for index in range(7)
    ]
    best = _best(nodes, wanted)
    packed = pack(nodes, wanted)
    reached = sum(pod.gpus for pod, node in zip(wanted, packed, strict=True) if node)
    assert reached <= best <= bounds.most_gpus(nodes, wanted) + 1e-6


def test_the_offline_packer_keeps_cores_for_every_gpu() -> None:
    """Packed as they come, the light pods would leave the poor node's GPUs to the heavy ones, which don't fit there."""
    nodes = [Node("rich", 64000, 100, 4), Node("poor", 8000, 100, 4)]
    assert pack(nodes, pods(4, 1, 2) + pods(4, 1, 16)) == ["poor"] * 4 + ["rich"] * 4


def test_the_offline_packer_places_no_pod_twice_and_none_that_does_not_fit() -> None:
    assert pack([BIG], pods(2, 8, 1) + pods(1, 0, 95) + pods(1, 0, 1)) in (
        ["", "big", "big", ""],
        ["", "big", "", "big"],
        ["", "big", "big", "big"],
    )
