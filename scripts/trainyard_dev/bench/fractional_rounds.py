"""What a round costs a scheduler that shares GPUs, by the number of nodes: why not all of them are replayed."""

from __future__ import annotations

from collections.abc import Sequence
from time import monotonic, sleep
from typing import Any

from trainyard.errors import TrainyardError
from trainyard_dev.bench import costs, fractional_gpus, objects, traces
from trainyard_dev.bench.configurations import column
from trainyard_dev.bench.harness import Harness
from trainyard_dev.bench.results import Measured, Run
from trainyard_dev.bench.schedulers import Volcano, scheduler
from trainyard_dev.bench.traces import WHOLE, Node, Pod

COLUMNS = ("ours-sharing", "ours")
SHARES = (0.1, 0.3, 1.0)  # of openb's nodes that have GPUs
ROUNDS = 5
METRIC = "round_cpu_ms"
LONGEST_S = 120.0  # for a round


def plan() -> list[Run]:
    """The same nodes for a scheduler that shares GPUs and for one that knows whole GPUs only."""
    return [
        Run("sharing", f"busy@{share:g}", of, 1, {"share": share, "rounds": ROUNDS})
        for share in SHARES
        for of in COLUMNS
    ]


def measure(run: Run, harness: Harness) -> Measured:
    """Processor milliseconds of the scheduler for a round: every GPU has a pod, and there is nothing to do."""
    nodes, chosen = traces.openb_nodes(run.settings["share"], "gpu"), column(run.column)
    harness.add_queue("default")
    plugin = fractional_gpus.offered(harness, nodes) if fractional_gpus.PLUGIN in chosen.config else None
    if not plugin:
        harness.add_nodes(nodes, effect=chosen.taint)
    fill(harness, nodes, shared=bool(plugin))
    with scheduler(harness, chosen) as running:
        assert isinstance(running, Volcano)
        if plugin:
            plugin.report(node.name for node in nodes)
        running.settle(harness)
        return Measured({METRIC: _round_cpu_ms(running, run.settings["rounds"])}, {})


def fill(harness: Harness, nodes: Sequence[Node], *, shared: bool) -> None:
    """Makes a pod on every GPU, or on every GPU where GPUs are not `shared`."""
    pods = [_placed(node, index, shared=shared) for node in nodes for index in range(node.gpus)]
    names = [one["metadata"]["name"] for one in pods]
    harness.create([objects.pod_group(name, 1) for name in names])
    harness.create(pods)
    harness.sees(names)


def _placed(node: Node, index: int, *, shared: bool) -> dict[str, Any]:
    """A pod on this GPU of the node."""
    asked = Pod(f"{node.name}-{index}", 100, 100, 1, WHOLE)
    made = fractional_gpus.pod(asked) if shared else objects.pod(asked, "volcano", group=asked.name)
    made["spec"]["nodeName"] = node.name
    if shared:
        made["metadata"]["annotations"][fractional_gpus.ASSIGNED] = fractional_gpus.assignment(node, index)
    return made


def _round_cpu_ms(running: Volcano, rounds: int) -> float:
    first, used = running.rounds(), costs.processor_s(*running.process.pids)
    end = monotonic() + LONGEST_S * rounds
    while (done := running.rounds() - first) < rounds:
        if monotonic() > end:
            raise TrainyardError(f"a round of vc-scheduler took longer than {LONGEST_S:.0f} s", hint="see its log")
        sleep(LONGEST_S / 100)  # asking costs it time as well
    return 1000 * (costs.processor_s(*running.process.pids) - used) / done
