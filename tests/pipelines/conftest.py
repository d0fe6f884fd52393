"""One platform for all tests of pipelines: real API server with the chart's rules and rights, real controllers, real
store, the real step program; only kubelet and the containers are ours."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import controller
import kubelet
import pytest
import store
from pipeline_harness import PipelineHarness

from trainyard import contract
from trainyard_dev import argo
from trainyard_dev.apiserver import running
from trainyard_dev.apiserver.install import install
from trainyard_dev.chart import package

HERE = Path(__file__).parent


@pytest.fixture(scope="session")
def harness(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PipelineHarness]:
    """The running platform with the teams vision and speech."""
    os.environ["KUBECONFIG"] = "/dev/null"  # helm must not find the cluster of whoever runs the tests
    folder = tmp_path_factory.mktemp("harness")
    objects = package.render("kind", values=[HERE / "teams.yaml"])
    argo.quiet(objects)
    with store.running(folder / "store") as objects_store, running() as server:
        install(server, objects)
        with kubelet.running(server, objects_store) as pods, controller.running(server, objects, folder) as controllers:
            yield PipelineHarness(
                server, objects, objects_store, pods, controllers, contract.load(HERE / "teams.yaml"), folder
            )
