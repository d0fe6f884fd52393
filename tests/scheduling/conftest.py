"""One API server with Volcano's CRDs and the contract's priority classes for all tests of this folder."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from bed import Bed

from trainyard_dev.bench import columns
from trainyard_dev.bench.world import World
from trainyard_dev.bench.world import world as running_world
from trainyard_dev.chart import package


@pytest.fixture(scope="session")
def chart(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The chart in a folder."""
    os.environ["KUBECONFIG"] = "/dev/null"
    return package.assemble(tmp_path_factory.mktemp("chart"), csi=False)


@pytest.fixture(scope="session")
def config(chart: Path) -> Callable[..., str]:
    """The scheduler's configuration with these values, as the chart renders it."""

    def render(*sets: str) -> str:
        objects = package.render("kind", chart, sets)
        return next(
            obj["data"]["volcano-scheduler.conf"]
            for obj in objects
            if obj["metadata"]["name"] == "trainyard-scheduler-configmap"
        )

    return render


@pytest.fixture(scope="session")
def world() -> Iterator[World]:
    """An API server with Volcano's kinds, without nodes and queues."""
    with running_world(columns.crds()) as made:
        yield made


@pytest.fixture(scope="session")
def bed(world: World) -> Bed:
    """The same with short names."""
    return Bed(world)
