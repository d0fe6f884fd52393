"""StrictFIFO on the real scheduler: with the switch on, nothing passes the first job of a queue."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

from trainyard.names import GPU
from trainyard_dev.e2e.context import NAMESPACE, SYSTEM, Context
from trainyard_dev.e2e.recorder import require
from trainyard_dev.e2e.releases import changed

ID, TITLE = "queues.strict", "queueingStrategy: StrictFIFO: a small pod doesn't pass the large one that came first"
STRICT = "global.contract.scheduler.queueingStrategy=StrictFIFO"
WAITS_S = 10  # several rounds of the scheduler
STARTS_S = 60
HEAD, LATE = "turn-head", "turn-late"


def strict(context: Context) -> None:
    """By default the small pod behind starts; after an upgrade to StrictFIFO it waits for the first."""
    most = max(context.gpus.values())
    if most < 2:
        context.recorder.skip(ID, TITLE, "it needs a node with two GPUs")
        return
    with context.recorder.check(ID, TITLE) as figures:
        with _line(context, most):
            require(_starts(context, LATE), "with BestEffortFIFO the pod behind should have started")
        with changed(context, STRICT) as figures["upgrade_seconds"]:
            scheduler = context.kubectl.get("pods", "-n", SYSTEM, "-l", "app=volcano-scheduler")
            names = {one["name"] for pod in scheduler for one in pod["spec"]["containers"]}
            require("queue-gate" in names, f"the scheduler's pod has the containers {sorted(names)}")
            with _line(context, most) as holders:
                figures["watched_seconds"] = WAITS_S
                require(not _starts(context, LATE, WAITS_S), "the pod behind passed the first of its queue")
                context.end_pods(*holders, check=True)
                require(_starts(context, HEAD), "the first of the queue doesn't start though it fits")
                require(_starts(context, LATE), "the pod behind doesn't start after the first")


@contextmanager
def _line(context: Context, most: int) -> Iterator[list[str]]:
    """One GPU of each node is taken by a holder; a pod that needs a whole node comes, then one that needs one GPU."""
    holders = {f"turn-holder-{number}": node for number, node in enumerate(n for n, has in context.gpus.items() if has)}
    try:
        for name, node in holders.items():
            _create(context, name, 1, node)
        for name in holders:
            require(_starts(context, name), f"{name} doesn't start")
        _create(context, HEAD, most)
        require(not _starts(context, HEAD, WAITS_S / 2), "the large pod started though no node has room for it")
        _create(context, LATE, 1)
        yield list(holders)
    finally:
        context.end_pods(*holders, HEAD, LATE, check=True)


def _create(context: Context, name: str, gpus: int, node: str | None = None) -> None:
    pod = context.pod(name, "sleep 300", node=node, queue=NAMESPACE)
    for quantities in pod["spec"]["containers"][0]["resources"].values():
        quantities[GPU] = str(gpus)
    context.kubectl.apply([pod], NAMESPACE)


def _starts(context: Context, name: str, seconds: float = STARTS_S) -> bool:
    """Whether the pod gets a node in this time."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if context.placed(name):
            return True
        time.sleep(1)
    return False
