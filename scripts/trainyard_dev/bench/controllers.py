"""vc-controller-manager, which makes pods and PodGroups of Volcano's jobs, with a configuration's flags."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from trainyard_dev import tools
from trainyard_dev.apiserver.processes import Server
from trainyard_dev.bench import columns
from trainyard_dev.bench.columns import Column
from trainyard_dev.bench.world import World


@contextmanager
def controllers(world: World, column: Column) -> Iterator[Server]:
    """Runs it on the world for the time of the body."""
    process = Server(
        [
            tools.binary("vc-controller-manager"), "--kubeconfig", world.server.kubeconfig, "--leader-elect=false",
            "--enable-healthz=false", "--enable-metrics=false", "--scheduler-name=volcano",
            *columns.controller_flags(column.name), "--v=1",
        ],
        world.server.folder / "vc-controller-manager.log",
    )  # fmt: skip
    try:
        yield process
    finally:
        process.stop()
