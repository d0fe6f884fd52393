"""One API server with Volcano's CRDs and the contract's priority classes for all tests of this folder."""

import os
from collections.abc import Callable, Iterator

import pytest
from scheduler_harness import SchedulerHarness

from trainyard_dev.bench import configurations
from trainyard_dev.bench.harness import Harness
from trainyard_dev.bench.harness import harness as running_harness
from trainyard_dev.chart import package


@pytest.fixture(scope="session")
def config() -> Callable[..., str]:
    """The scheduler's configuration with these values, as the chart renders it."""
    os.environ["KUBECONFIG"] = "/dev/null"

    def render(*sets: str) -> str:
        objects = package.render("kind", sets=sets)
        return next(
            obj["data"]["volcano-scheduler.conf"]
            for obj in objects
            if obj["metadata"]["name"] == "trainyard-scheduler-configmap"
        )

    return render


@pytest.fixture(scope="session")
def harness() -> Iterator[Harness]:
    """An API server with Volcano's kinds, without nodes and queues."""
    with running_harness(configurations.crds()) as made:
        yield made


@pytest.fixture(scope="session")
def cluster(harness: Harness) -> SchedulerHarness:
    """The same with short names."""
    return SchedulerHarness(harness)
