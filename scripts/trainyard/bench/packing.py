"""Packing: pods of openb arrive until they ask for 130 % of the GPUs and never leave; how many GPUs are given away?"""

from __future__ import annotations

from collections.abc import Sequence

from trainyard.bench import objects
from trainyard.bench.columns import Column
from trainyard.bench.schedulers import scheduler
from trainyard.bench.traces import Node, Pod
from trainyard.bench.world import World

BATCH = 500


def place(world: World, column: Column, nodes: Sequence[Node], pods: Sequence[Pod]) -> dict[str, str]:
    """Node of each pod ("" where it was refused). Pods arrive in order; the next batch when nothing moves any more."""
    world.add_nodes(nodes, effect=column.taint)
    placed: dict[str, str] = {}
    with scheduler(world, column) as running:
        for start in range(0, len(pods), BATCH):
            batch = pods[start : start + BATCH]
            with running.process.paused():  # it gets the batch as a whole, and leaves the processors to its making
                if column.scheduler == "volcano":
                    world.create([objects.pod_group(one.name, 1) for one in batch])
                world.create([objects.pod(one, column.scheduler, group=one.name) for one in batch])
                world.sees(one.name for one in batch)
            running.settle(world)
            for one in batch:
                placed[one.name] = world.pods[one.name].node
            refused = [one.name for one in batch if not placed[one.name]]
            world.delete(refused)
            world.sees(refused, gone=True)
    return placed
