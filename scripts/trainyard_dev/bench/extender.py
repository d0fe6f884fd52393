"""The program beside Volcano that its extender asks, where a configuration has one."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import trainyard
from trainyard_dev.apiserver.processes import Server, free_ports
from trainyard_dev.bench.configurations import Configuration
from trainyard_dev.bench.harness import Harness

GATE = "127.0.0.1:10260"  # where the chart's configuration expects it
START_S = 30.0


@contextmanager
def answering(harness: Harness, column: Configuration) -> Iterator[Configuration]:
    """The column with the address of a program that answers it while the body runs; as it is if it asks nobody."""
    if GATE not in column.config:
        yield column
        return
    [port] = free_ports(1)
    package = str(Path(trainyard.__file__).parent.parent)
    log = harness.server.folder / "queue-gate.log"
    argv = ["env", f"PYTHONPATH={package}", sys.executable, "-m", "trainyard_agent", "queue-gate"]
    program = Server([*argv, "--port", str(port)], log)
    try:
        program.wait(lambda: b"127.0.0.1" in log.read_bytes(), START_S)
        yield replace(column, config=column.config.replace(GATE, f"127.0.0.1:{port}"))
    finally:
        program.stop()
