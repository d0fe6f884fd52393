"""A real API server with the platform's objects on it: profile kind and two teams, made once for all tests."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from trainyard_dev.apiserver import ApiServer, running
from trainyard_dev.apiserver.install import install
from trainyard_dev.chart import package

HERE = Path(__file__).parent


@pytest.fixture(scope="session")
def server() -> Iterator[ApiServer]:
    """The server with all that an installation leaves on it. Tests ask by dry run, or remove what they make."""
    os.environ["KUBECONFIG"] = "/dev/null"  # helm must not find the cluster of whoever runs the tests
    objects = package.render("kind", values=[HERE / "teams.yaml"])
    objects += yaml.safe_load_all((HERE / "extra.yaml").read_text())
    with running() as found:
        install(found, objects)
        yield found
