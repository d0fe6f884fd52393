"""The assembled chart and its rendered profiles, made once for all tests of charts."""

from __future__ import annotations

import os
from pathlib import Path

import monitored
import pytest
import team_values
from stored import MNIST, contract

from rendering import Objects, Rendering
from trainyard_dev.chart import parts


@pytest.fixture(scope="session")
def render(tmp_path_factory: pytest.TempPathFactory) -> Rendering:
    """What the chart makes of values beside a profile."""
    os.environ["KUBECONFIG"] = "/dev/null"  # helm must not find the cluster of the person who runs the tests
    return Rendering(tmp_path_factory.mktemp("chart"))


@pytest.fixture(scope="session")
def chart(render: Rendering) -> Path:
    """The chart in a folder."""
    return render.chart


@pytest.fixture(scope="session")
def rendered(render: Rendering) -> dict[str, Objects]:
    """Every object of every profile."""
    return {profile: render(profile=profile) for profile in parts.profiles()}


@pytest.fixture(params=parts.profiles())
def profile(request: pytest.FixtureRequest) -> str:
    """Each profile in turn."""
    return str(request.param)


@pytest.fixture
def objects(render: Rendering, profile: str) -> Objects:
    """The objects of one profile."""
    return render(profile=profile)


@pytest.fixture(scope="session")
def full(render: Rendering) -> Objects:
    """Everything switched on."""
    return render(contract({"caches": [MNIST]}, backup={"enabled": True}))


@pytest.fixture(scope="session")
def with_monitoring(render: Rendering) -> dict[str, Objects]:
    """Every profile with monitoring on and two teams."""
    return {profile: render(monitored.on(), profile=profile) for profile in parts.profiles()}


@pytest.fixture(scope="session")
def with_teams(render: Rendering) -> Objects:
    """Everything with the teams vision and speech."""
    return render(team_values.values(team_values.VISION, team_values.SPEECH))
