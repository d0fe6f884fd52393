"""One API server with Volcano's CRDs and the contract's priority classes for all tests of this folder."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from bed import Bed

from trainyard.apiserver import running
from trainyard.apiserver.install import install
from trainyard.chart import package

KINDS = ("CustomResourceDefinition", "PriorityClass")


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
def bed(chart: Path) -> Iterator[Bed]:
    """The API server, without nodes and queues."""
    wanted = [obj for obj in package.render("kind", chart) if obj["kind"] in KINDS]
    with running() as server:
        install(server, [obj for obj in wanted if "kubeflow" not in obj["metadata"]["name"]])
        yield Bed(server)
