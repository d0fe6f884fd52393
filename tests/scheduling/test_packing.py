"""Packing on real schedulers: a twentieth of openb's cluster and the list with the most pods of 8 GPUs."""

import pytest

from trainyard.errors import TrainyardError
from trainyard_dev.bench import configurations, packing, traces
from trainyard_dev.bench.harness import Harness
from trainyard_dev.bench.packed import WIDE, Packed
from trainyard_dev.bench.traces import Node, Pod

SHARE, SEED = 0.05, 43
Load = tuple[list[Node], list[Pod]]


@pytest.fixture(scope="module")
def load() -> Load:
    """Nodes, and pods that together ask for most of their GPUs; skipped where nobody has the trace."""
    try:
        nodes = traces.openb_nodes(SHARE)
        return nodes, traces.workload("multigpu30", SEED, nodes, demand=0.95)
    except TrainyardError as error:
        pytest.skip(str(error))


def packed(harness: Harness, load: Load, column: str) -> Packed:
    """The cluster after all pods have come, packed by this configuration."""
    nodes, pods = load
    harness.clear()
    harness.add_queue("default")
    placed, _ = packing.place(harness, configurations.column(column), nodes, pods)
    harness.clear()
    state = Packed(nodes, [pod for pod in pods if pod.gpus == WIDE])
    for pod, node in zip(pods, placed, strict=True):
        state.add(pod, node)
    state.judge()
    return state


@pytest.mark.long
def test_ours_packs_what_the_default_scatters(harness: Harness, load: Load) -> None:
    baseline, default = packed(harness, load, "ours"), packed(harness, load, "volcano-default")
    assert {gpus: baseline.refused(gpus) for gpus in (0, 1, 2, 4, WIDE)} == dict.fromkeys((0, 1, 2, 4, WIDE), 0)
    assert baseline.allocated == baseline.arrived
    assert default.refused(0) == 0
    assert (default.refused(WIDE) or 0.0) > 20
    assert not default.refused_fitting.total()
