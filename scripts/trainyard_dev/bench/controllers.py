"""vc-controller-manager, which makes pods and PodGroups of Volcano's jobs, with a configuration's flags."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from trainyard_dev import tools
from trainyard_dev.apiserver.processes import Server
from trainyard_dev.bench import configurations
from trainyard_dev.bench.configurations import Configuration
from trainyard_dev.bench.harness import Harness


@contextmanager
def controllers(harness: Harness, column: Configuration) -> Iterator[Server]:
    """Runs it on the harness for the time of the body."""
    process = Server(
        [
            tools.binary("vc-controller-manager"), "--kubeconfig", harness.server.kubeconfig, "--leader-elect=false",
            "--enable-healthz=false", "--enable-metrics=false", "--scheduler-name=volcano",
            *configurations.controller_flags(column.name), "--v=1",
        ],
        harness.server.folder / "vc-controller-manager.log",
    )  # fmt: skip
    try:
        yield process
    finally:
        process.stop()
