"""GPUs that pods share, in Volcano's terms: what its device plugin says of a node, what a pod asks for, what it got.

A GPU has 100 parts. Its memory has 100 parts as well and a pod asks for as many of these as of the GPU, because the
trace has one figure for both.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

from trainyard.errors import TrainyardError
from trainyard_dev.bench import objects
from trainyard_dev.bench.harness import GPU, MERGE, PODS, Harness
from trainyard_dev.bench.traces import WHOLE, Node, Pod

NUMBER, CORES, MEMORY = "volcano.sh/vgpu-number", "volcano.sh/vgpu-cores", "volcano.sh/vgpu-memory"
REGISTER, HANDSHAKE = "volcano.sh/node-vgpu-register", "volcano.sh/node-vgpu-handshake"
ASSIGNED = "volcano.sh/vgpu-ids-new"
RESERVE = "resource-strategy-fit"  # Volcano's plugin that keeps cores and memory free for free GPUs
PLUGIN = "deviceshare"
PARTS = 100
# The scheduler answers a handshake that is older than a minute with a client that works only inside a cluster.
LATER = datetime(2099, 1, 1)


class DevicePlugin:
    """Speaks for the device plugins of all nodes."""

    def __init__(self, harness: Harness, nodes: Iterable[Node]) -> None:
        self._world = harness
        self._nodes = {node.name: node for node in nodes if node.gpus}
        self._reports = 0

    def register(self) -> None:
        """Offers fractions of every GPU of every node."""

        def offer(lane: Any, node: Node) -> None:
            parts = str(PARTS * node.gpus)
            room = {NUMBER: parts, CORES: parts, MEMORY: parts}
            path = f"/api/v1/nodes/{node.name}/status"
            _taken(lane.call("PATCH", path, {"status": {"allocatable": room, "capacity": room}}, content=MERGE))

        self._world.each(list(self._nodes.values()), offer)
        self.report(self._nodes)

    def report(self, names: Iterable[str]) -> None:
        """Tells of these nodes' GPUs anew, whereupon the scheduler counts anew what is taken of them.

        It must: vc-scheduler 1.14 counts a pod twice, when it places it and when it sees it placed (its issue 4809),
        and knows no GPU of a node that it saw before it read its configuration.
        """
        self._reports += 1
        stamp = f"Requesting_{LATER + timedelta(seconds=self._reports):%Y.%m.%d %H:%M:%S}"

        def tell(lane: Any, node: Node) -> None:
            notes = {REGISTER: _register(node), HANDSHAKE: stamp}
            path = f"/api/v1/nodes/{node.name}"
            _taken(lane.call("PATCH", path, {"metadata": {"annotations": notes}}, content=MERGE))

        self._world.each([self._nodes[name] for name in names if name in self._nodes], tell)


def offered(harness: Harness, nodes: Sequence[Node]) -> DevicePlugin:
    """Adds the nodes, whose GPUs a device plugin offers, and no kubelet's count of GPUs."""
    harness.add_nodes([replace(node, gpus=0) for node in nodes])
    plugin = DevicePlugin(harness, nodes)
    plugin.register()
    return plugin


def pod(asked: Pod) -> dict[str, Any]:
    """A pod that asks for fractions of GPUs: `gpus` GPUs, of each the same share."""
    made = objects.pod(asked, "volcano", group=asked.name)
    room = made["spec"]["containers"][0]["resources"]["limits"]  # the requests are the same
    if room.pop(GPU, None):
        part = str(asked.gpu_milli * PARTS // WHOLE)
        room |= {NUMBER: str(asked.gpus), CORES: part, MEMORY: part}
    return made


def assigned(harness: Harness) -> dict[str, dict[str, int]]:
    """Pod -> GPU -> parts of it, as the scheduler wrote it on each bound pod; empty for a pod without a GPU."""
    found = harness.server.call("GET", PODS).body["items"]
    notes = {one["metadata"]["name"]: one["metadata"].get("annotations", {}) for one in found if _bound(one)}
    return {name: _cards(said.get(ASSIGNED, "")) for name, said in notes.items()}


def assignment(node: Node, index: int) -> str:
    """What the scheduler writes on a pod that gets all of this GPU."""
    return f"{_id(node, index)},NVIDIA,{PARTS},{PARTS}:"


def overfull(taken: Mapping[str, Mapping[str, int]]) -> int:
    """How many GPUs were allocated more than once."""
    sums: Counter[str] = Counter()
    for parts in taken.values():
        sums.update(parts)
    return sum(parts > PARTS for parts in sums.values())


def sharing(config: dict[str, Any], arguments: Mapping[str, Any]) -> None:
    """Lets a Volcano configuration share GPUs; GPUs that it weighs become fractions of GPUs.

    What it keeps free for whole GPUs goes: all nodes have GPUs, so pods without one have nowhere else to be.
    """
    for tier in config["tiers"]:
        tier["plugins"] = [plugin for plugin in tier["plugins"] if plugin["name"] != RESERVE]
        for plugin in tier["plugins"]:
            if "arguments" in plugin:
                plugin["arguments"] = {
                    key.replace(GPU, CORES): value.replace(GPU, CORES) if isinstance(value, str) else value
                    for key, value in plugin["arguments"].items()
                }
    config["tiers"][-1]["plugins"].append({"name": PLUGIN, "arguments": dict(arguments)})


def _register(node: Node) -> str:
    """Id, most pods, memory, model, health and way of sharing of each GPU."""
    return "".join(
        f"{_id(node, index)},{PARTS},{PARTS},NVIDIA-{node.model},true,hami-core:" for index in range(node.gpus)
    )


def _id(node: Node, index: int) -> str:
    return f"GPU-{node.name}-{index}"


def _cards(text: str) -> dict[str, int]:
    fields: Sequence[list[str]] = [card.split(",") for card in text.split(":") if card]
    return {card: int(cores) for card, _, _, cores in fields}


def _bound(one: dict[str, Any]) -> bool:
    return bool(one["spec"].get("nodeName"))


def _taken(answer: Any) -> None:
    if not answer.ok:
        raise TrainyardError(f"the API server refused what a device plugin says: {answer.message}")
