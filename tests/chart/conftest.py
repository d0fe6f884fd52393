"""The assembled chart and its rendered profiles, made once for all tests of this folder."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import monitored
import pytest
import team_values
import yaml
from stored import MNIST, Objects, contract

from trainyard.errors import TrainyardError
from trainyard_dev.chart import package, parts


@pytest.fixture(scope="session")
def chart(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The chart in a folder, without csi-driver-nfs, whose repository the tests don't ask."""
    return package.assemble(tmp_path_factory.mktemp("chart"), csi=False)


@pytest.fixture(scope="session")
def rendered(chart: Path) -> dict[str, list[dict[str, Any]]]:
    """Every object of every profile."""
    return {profile: package.render(profile, chart) for profile in parts.profiles()}


@pytest.fixture(params=parts.profiles())
def profile(request: pytest.FixtureRequest) -> str:
    """Each profile in turn."""
    return str(request.param)


@pytest.fixture
def objects(rendered: dict[str, list[dict[str, Any]]], profile: str) -> list[dict[str, Any]]:
    """The objects of one profile."""
    return rendered[profile]


@pytest.fixture(scope="session", autouse=True)
def _no_cluster() -> None:
    """Helm must not find the cluster of whoever runs the tests."""
    os.environ["KUBECONFIG"] = "/dev/null"


@pytest.fixture(scope="session")
def validation_errors(chart: Path, tmp_path_factory: pytest.TempPathFactory) -> Callable[..., list[str]]:
    """What the chart says against values, one sentence each; an empty list when it takes them."""
    folder = tmp_path_factory.mktemp("values")

    def reported(values: dict[str, Any], profile: str = "kind") -> list[str]:
        file = folder / "values.yaml"
        file.write_text(yaml.safe_dump(values))
        try:
            package.template(profile, chart, values=[file])
        except TrainyardError as error:
            text = str(error).removesuffix(" see the chart's values.yaml.")
            if "The values don't fit together:" not in text:
                raise
            return [line.strip() for line in text.split(" - ")[1:]]
        return []

    return reported


@pytest.fixture(scope="session")
def render(chart: Path, tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Objects]:
    """What the chart makes of values beside the profile kind."""
    file = tmp_path_factory.mktemp("values") / "values.yaml"

    def go(values: dict[str, Any], profile: str = "kind") -> Objects:
        file.write_text(yaml.safe_dump(values))
        return package.render(profile, chart, values=[file])

    return go


@pytest.fixture(scope="session")
def full(render: Callable[..., Objects]) -> Objects:
    """Everything switched on."""
    return render(contract({"caches": [MNIST]}, backup={"enabled": True}))


@pytest.fixture(scope="session")
def with_monitoring(chart: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Objects]:
    """Every profile with monitoring on and two teams."""
    file = tmp_path_factory.mktemp("values") / "values.yaml"
    file.write_text(yaml.safe_dump(monitored.on()))
    return {profile: package.render(profile, chart, values=[file]) for profile in parts.profiles()}


@pytest.fixture(scope="session")
def with_teams(chart: Path, tmp_path_factory: pytest.TempPathFactory) -> Objects:
    """Everything with the teams vision and speech."""
    values = team_values.write(tmp_path_factory.mktemp("teams"), team_values.VISION, team_values.SPEECH)
    return package.render("kind", chart, values=[values])
