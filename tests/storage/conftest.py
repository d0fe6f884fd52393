"""Real stores on this machine, and their environment as pods have it."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import ceph
import pytest
import yaml
from cluster import KEY, FakeApi
from minio import Minio
from packaged import Pod
from played import Cluster

from servers import Server, env_of, start
from trainyard import contract as contracts
from trainyard.kinds import TeamConfig
from trainyard_agent.store import buckets, connect, s3_users
from trainyard_dev.chart import parts


@pytest.fixture(scope="session")
def launch(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[..., Server]]:
    """`launch()` starts a server of one's own; all end with the tests."""
    running = []

    def go(certs: Path | None = None, ca: str = "", **env: str) -> Server:
        folder = tmp_path_factory.mktemp("minio")
        process, server = start(folder / "data", certs or folder / "certs", ca, **env)
        running.append(process)
        return server

    yield go
    for process in running:
        process.stop()


@pytest.fixture(scope="session")
def minio(launch: Callable[..., Server]) -> Server:
    """The MinIO that tests share; each makes what it needs."""
    return launch()


@pytest.fixture(scope="session")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A gateway of Ceph that tests share, where its packages can be had."""
    if reason := ceph.missing():
        pytest.skip(reason)
    with ceph.Cluster(tmp_path_factory.mktemp("ceph")) as cluster:
        yield Server(cluster.root, cluster.folder)


@pytest.fixture(scope="session")
def server(request: pytest.FixtureRequest) -> Server:
    """The store that a test is about: MinIO, or what it is parametrized with."""
    return request.getfixturevalue(getattr(request, "param", "minio"))


@pytest.fixture
def contract(server: Server) -> dict[str, Any]:
    """The contract's default values, with two teams and this store."""
    made = yaml.safe_load((parts.UMBRELLA / "values.yaml").read_text())["global"]["contract"]
    made["teams"] = [{"name": "vision", "gid": 20001}, {"name": "speech", "gid": 20002}]
    if server.root.user == ceph.ADMIN:
        made["storage"]["s3"] |= {"mode": "external", "endpoint": server.root.endpoint, "users": "rgw"}
    return made


@pytest.fixture
def environment(server: Server, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """The variables that the setup job has."""
    made = env_of(replace(server.root, user="PLATFORM0ABCDEFGHIJK", password="platform-secret-key"))
    names = ("ADMIN_ACCESS_KEY", "ADMIN_SECRET_KEY") if server.root.user == ceph.ADMIN else connect.ROOT
    made |= {"ADMIN_ENDPOINT": server.root.endpoint} | dict(
        zip(names, (server.root.user, server.root.password), strict=True)
    )
    for name, value in made.items():
        monkeypatch.setenv(name, value)
    return made


@pytest.fixture
def api() -> FakeApi:
    return FakeApi("vision", "speech")


@pytest.fixture
def ready(contract: dict[str, Any], clock: Any, environment: dict[str, str], server: Server, api: FakeApi) -> Server:
    """The store, set up for both teams, whose keys `api` has."""
    buckets.ensure(contract, clock)
    s3_users.ensure_teams(contract, api, timedelta(days=7))  # type: ignore[arg-type]
    return server


@pytest.fixture
def logged(contract: dict[str, Any], server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    """Logs are on, and the setup job has the key of who writes them."""
    contract["logs"] = {"bucket": "logs", "retentionDays": 30}
    for name, value in (("ENDPOINT", server.root.endpoint), ("ACCESS_KEY", KEY[0]), ("SECRET_KEY", KEY[1])):
        monkeypatch.setenv(f"LOGS_{name}", value)


@pytest.fixture
def runs(server: Server) -> Minio:
    """A client for the root of a store that has the bucket."""
    found = server.admin
    if not found.bucket_exists("runs"):
        found.make_bucket("runs")
    return found


@pytest.fixture
def cluster(server: Server, runs: Minio) -> Cluster:
    return Cluster(server)


@pytest.fixture
def team_config(tmp_path: Path) -> TeamConfig:
    file = tmp_path / "values.yaml"
    file.write_text(yaml.safe_dump({"global": {"contract": {"teams": [{"name": "vision", "gid": 20001}]}}}))
    return TeamConfig.of(contracts.load(file), "vision")


@pytest.fixture
def clock() -> SimpleNamespace:
    """A deadline of one look."""

    def wait(what: str, ready: Callable[[], str]) -> None:
        assert ready() == "", what

    return SimpleNamespace(wait=wait)


@pytest.fixture
def pod(server: Server, runs: Minio, tmp_path: Path) -> Callable[..., Pod]:
    """`pod(index, **env)` makes the volume of a run's pod; the store has no packages and no wheels before."""
    count = iter(range(99))
    for prefix in ("vision/packages/", "shared/wheels/"):
        for entry in runs.list_objects("runs", prefix, recursive=True):
            runs.remove_object("runs", str(entry.object_name))

    def make(index: str = "", **env: str) -> Pod:
        return Pod(tmp_path / f"pod-{next(count)}", server, index, env)

    return make
