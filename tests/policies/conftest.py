"""A real API server with the platform's objects on it: profile kind and two teams, made once for all tests."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from filled_in import SERVES, SETS, closed
from hook_api import Objects, granted
from login_world import World
from login_world import made as world_made

from trainyard import contract
from trainyard.contract import Contract
from trainyard_dev.apiserver import ApiServer, running
from trainyard_dev.apiserver.install import install
from trainyard_dev.chart import package
from trainyard_dev.policy import check

HERE = Path(__file__).parent


@pytest.fixture(scope="session")
def server() -> Iterator[ApiServer]:
    """The server with all that an installation leaves on it. Tests ask by dry run, or remove what they make."""
    os.environ["KUBECONFIG"] = "/dev/null"  # helm must not find the cluster of the person who runs the tests
    objects = package.render("kind", values=[HERE / "teams.yaml", HERE / "options.yaml"])
    objects += yaml.safe_load_all((HERE / "extra.yaml").read_text())
    with running() as found:
        install(found, objects)
        yield found


@pytest.fixture(scope="module")
def hooks(server: ApiServer) -> Iterator[Objects]:
    """All hook objects of the chart; those that give rights are on the server."""
    found = [obj for obj in package.render("kind") if "helm.sh/hook" in obj["metadata"].get("annotations", {})]
    made = [obj for obj in found if obj["kind"].removeprefix("Cluster") in ("Role", "RoleBinding")
            and obj["metadata"]["name"] in ("trainyard-crds", "trainyard-teardown")]  # fmt: skip
    granted(server, made)
    yield found
    for obj in made:
        server.call("DELETE", f"{server.path(obj)}/{obj['metadata']['name']}")


@pytest.fixture
def made(server: ApiServer) -> Iterator[Any]:
    """`made(obj, status)` puts an object on the server until the test ends."""
    paths: list[str] = []

    def make(obj: dict[str, Any], status: dict[str, Any] | None = None) -> dict[str, Any]:
        meta = {"namespace": "default"} | obj["metadata"]
        answer = server.create(obj | {"metadata": meta})
        assert answer.ok, answer.message
        paths.append(f"{server.path(answer.body)}/{meta['name']}")
        if status:
            assert server.replace(answer.body | {"status": status}, sub="status").ok
        return answer.body

    yield make
    for path in reversed(paths):  # no controller runs that would take finalizers off
        no_finalizers = {"metadata": {"finalizers": None}}
        server.call("PATCH", path, no_finalizers, content="application/merge-patch+json")
        server.call("DELETE", path, {"gracePeriodSeconds": 0})


@pytest.fixture(scope="session")
def filling() -> Iterator[ApiServer]:
    """A server with the platform as a cluster has it that serves MutatingAdmissionPolicy."""
    objects = package.render("kind", values=[HERE / "teams.yaml", HERE / "options.yaml"], sets=SETS, serves=SERVES)
    objects += yaml.safe_load_all((HERE / "extra.yaml").read_text())
    with running() as found:
        install(found, objects)
        for name in ("default", "case-launcher"):  # as the setup job leaves the first one
            closed(found, "vision", name)
        yield found


@pytest.fixture(scope="session")
def vision() -> Iterator[check.Site]:
    """The platform of the same teams without options, as `trainyard policy` sets it up for team vision."""
    with check.site(package.render("kind", values=[HERE / "teams.yaml"]), "vision") as found:
        yield found


@pytest.fixture(scope="session")
def site(tmp_path_factory: pytest.TempPathFactory) -> Contract:
    """The contract of the same values."""
    values = yaml.safe_load((HERE / "teams.yaml").read_text())
    values |= yaml.safe_load((HERE / "options.yaml").read_text())
    values["policies"]["fill"] = {
        "images": {
            "example.org/well/known": "trainerTorch", "docker.io/well/known": "trainerTorch",
            "well/known:2.15": "trainerJax",
        },
        "clusterStorageClasses": ["cluster-own"],
    }  # fmt: skip
    file = tmp_path_factory.mktemp("site") / "values.yaml"
    file.write_text(yaml.safe_dump(values))
    return contract.load(file)


@pytest.fixture(scope="session")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    """An API server that takes the tokens of a Dex, made once for all tests of log-in that leave everybody there."""
    with world_made(tmp_path_factory.mktemp("login")) as found:
        yield found


@pytest.fixture
def home(world: World, tmp_path: Path) -> Path:
    """Of somebody who has just logged in as ada."""
    world.logged_in(tmp_path)
    return tmp_path
