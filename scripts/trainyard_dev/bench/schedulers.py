"""Runs the scheduler of a configuration, with the program that it queries, if any."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Protocol

import trainyard
from trainyard_dev.apiserver.processes import Server, free_ports
from trainyard_dev.bench.configurations import Configuration
from trainyard_dev.bench.harness import Harness
from trainyard_dev.bench.scheduler_kueue import Kueue, Pair
from trainyard_dev.bench.scheduler_processes import PERIOD_MS, Kube, Volcano

GATE = "127.0.0.1:10260"  # where the chart's configuration expects the program that Volcano's extender queries
GATE_S = 30.0


class Scheduler(Protocol):
    """A running scheduler."""

    @property
    def process(self) -> Server | Pair:
        """The running process or processes."""

    def settle(self, harness: Harness) -> None:
        """Waits until the scheduler has seen everything and is idle."""


@contextmanager
def scheduler(harness: Harness, column: Configuration, *, period_ms: int = PERIOD_MS) -> Iterator[Scheduler]:
    """Runs the column's scheduler on the harness while the body runs."""
    running: Scheduler
    with _answering(harness, column) as column:
        if column.scheduler == "volcano":
            running = Volcano(harness, column, period_ms)
        else:
            running = Kueue(harness, column) if column.scheduler == "kueue" else Kube(harness, column)
        try:
            yield running
        finally:
            running.process.stop()


@contextmanager
def _answering(harness: Harness, column: Configuration) -> Iterator[Configuration]:
    """Runs the program that the column's scheduler queries, if any; yields the column with that program's address."""
    if GATE not in column.config:
        yield column
        return
    [port] = free_ports(1)
    package = str(Path(trainyard.__file__).parent.parent)
    log = harness.server.folder / "queue-gate.log"
    argv = ["env", f"PYTHONPATH={package}", sys.executable, "-m", "trainyard_agent", "queue-gate"]
    program = Server([*argv, "--port", str(port)], log)
    try:
        program.wait(lambda: b"127.0.0.1" in log.read_bytes(), GATE_S)
        yield replace(column, config=column.config.replace(GATE, f"127.0.0.1:{port}"))
    finally:
        program.stop()
