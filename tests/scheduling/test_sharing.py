"""Shared GPUs with a real vc-scheduler: no GPU is allocated twice, and why the device plugin must speak often."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from trainyard_dev.bench import configurations, fractional_gpus, fractional_rounds, objects, sharing
from trainyard_dev.bench.harness import Harness
from trainyard_dev.bench.schedulers import Volcano, metrics, scheduler
from trainyard_dev.bench.traces import Node, Pod

NODES = [Node("c-1", 64000, 64000, 1, "T4"), Node("c-2", 64000, 64000, 2, "T4")]

OF_POD = "volcano_vgpu_device_core_allocation_for_a_certain_pod"


@pytest.fixture
def empty(harness: Harness) -> Iterator[Harness]:
    """The harness with a queue; what is made on it goes."""
    harness.add_queue("default")
    yield harness
    harness.clear()


def asked(name: str, milli: int, gpus: int = 1) -> Pod:
    """A pod that asks for so much of each of its GPUs."""
    return Pod(name, 1000, 1000, gpus, milli)


def test_cards_are_shared_and_never_given_away_twice(empty: Harness) -> None:
    pods = [
        asked("s0", 600), asked("s1", 600), asked("s2", 600), asked("s3", 600),  # one too many
        asked("s4", 400), asked("s5", 300), asked("s6", 1000), asked("s7", 400), asked("s8", 1000, 2),
    ]  # fmt: skip
    placed = sharing.place(empty, configurations.column("ours-sharing"), NODES, pods)
    assert [name for name, node in placed.items() if not node] == ["s3", "s6", "s8"]
    taken = fractional_gpus.assigned(empty)
    assert fractional_gpus.overfull(taken) == 0
    assert all(taken[name] for name, node in placed.items() if node)
    assert {card.rsplit("-", 1)[0] for card in taken["s0"]} == {f"GPU-{placed['s0']}"}


def test_pods_together_end_in_the_same_refusals(empty: Harness) -> None:
    pods = [asked(f"t{index}", 500) for index in range(8)]
    placed = sharing.place(empty, configurations.column("ours-sharing"), NODES, pods, together=8)
    taken = fractional_gpus.assigned(empty)
    carded = [name for name, node in placed.items() if node and taken[name]]
    assert len(carded) == 6
    assert fractional_gpus.overfull(taken) == 0


def test_a_pod_counts_twice_until_its_nodes_device_plugin_speaks(empty: Harness) -> None:
    """The bug of Volcano that the benchmark works around. When this fails the work-around can go."""
    node = NODES[0]
    plugin = fractional_gpus.offered(empty, [node])
    with scheduler(empty, configurations.column("ours-sharing")) as running:
        plugin.report([node.name])
        for name in ("u0", "u1"):
            empty.create([objects.pod_group(name, 1)])
            empty.create([fractional_gpus.pod(asked(name, 500))])
            empty.sees([name])
            running.settle(empty)
        assert [empty.pods[name].node for name in ("u0", "u1")] == [node.name, ""]
        plugin.report([node.name])
        running.settle(empty)
        assert empty.pods["u1"].node == node.name


def test_a_pod_on_every_card_is_in_the_schedulers_metrics(empty: Harness) -> None:
    """What the cost of rounds is measured with."""
    plugin = fractional_gpus.offered(empty, NODES)
    fractional_rounds.fill(empty, NODES, shared=True)
    with scheduler(empty, configurations.column("ours-sharing")) as running:
        plugin.report(node.name for node in NODES)
        running.settle(empty)
        assert isinstance(running, Volcano)
        port = running.port

        def found() -> list[float]:  # a card's own sample goes for a moment whenever its node is read anew
            return [value for name, value in metrics(port).items() if name.startswith(OF_POD)]

        empty.wait("a whole card's share of each card", lambda: found() == [fractional_gpus.PARTS] * 3)
