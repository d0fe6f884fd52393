"""Users of real stores: a team reaches its own prefix and what is shared, and nothing of another team."""

import io
import json
from datetime import timedelta
from typing import Any

import pytest
from acts import Act, all_refused, fetch, listing, put, remove
from cluster import FakeApi
from minio import Minio
from minio.commonconfig import CopySource
from minio.error import S3Error
from minio.versioningconfig import VersioningConfig

from servers import Server
from trainyard_agent.say import PlatformError
from trainyard_agent.store import accounts, s3_users

KEEP = timedelta(days=7)
pytestmark = pytest.mark.parametrize("server", ["minio", "gateway"], indirect=True)

WHEEL = "shared/wheels/0/tiny-1-py3-none-any.whl"


@pytest.fixture
def ready(ready: Server) -> Server:
    """Each team has an object of its own, and there is one that all share."""
    root = ready.admin
    for bucket, key in [
        ("raw-data", "scans/1"),
        ("datasets", "shared/mnist/a"),
        ("runs", WHEEL),
        ("runs", "speech/packages/0.tar.gz"),
    ]:
        root.put_object(bucket, key, io.BytesIO(b"all"), 3)
    for team in ("vision", "speech"):
        for bucket in ("datasets", "runs"):
            root.put_object(bucket, f"{team}/own", io.BytesIO(b"own"), 3)
    return ready


def user(server: Any, api: FakeApi, team: str) -> Minio:
    return server.client(api.secrets[team]["access-key"], api.secrets[team]["secret-key"])


REFUSED: dict[str, Act] = {
    "read another team's object": fetch("datasets", "speech/own"),
    "read another team's result": fetch("runs", "speech/own"),
    "list another team's prefix": listing("datasets", "speech/", recursive=True),
    "list what begins like another team": listing("datasets", "s", recursive=True),
    "list the names of all teams": lambda client: list(client.list_objects("datasets")),
    "list all versions": lambda client: list(client.list_objects("datasets", include_version=True)),
    "write below another team's prefix": put("datasets", "speech/x"),
    "write beside the prefixes": put("runs", "x"),
    "write below a prefix that only begins like its own": put("runs", "vision2/x"),
    "write what is shared": put("datasets", "shared/x"),
    "replace a wheel that all teams install": put("runs", WHEEL),
    "bring a wheel for all teams": put("runs", "shared/wheels/0/other-1-py3-none-any.whl"),
    "remove a wheel of the platform": remove("runs", WHEEL),
    "replace packages that another team has installed": put("runs", "speech/packages/0.tar.gz"),
    "read packages that another team has installed": fetch("runs", "speech/packages/0.tar.gz"),
    "delete another team's object": remove("runs", "speech/own"),
    "copy another team's object": lambda client: client.copy_object(
        "datasets", "vision/stolen", CopySource("datasets", "speech/own")
    ),
    "delete raw data": remove("raw-data", "scans/1"),
    "write raw data": put("raw-data", "scans/2"),
    "make a bucket": lambda client: client.make_bucket("mine"),
    "remove a bucket": lambda client: client.remove_bucket("runs"),
    "turn versioning off": lambda client: client.set_bucket_versioning("datasets", VersioningConfig("Suspended")),
    "drop the lifecycle": lambda client: client.delete_bucket_lifecycle("datasets"),
    "open a bucket to everyone": lambda client: client.set_bucket_policy("runs", "{}"),
}


def test_team_is_refused(ready: Any, api: FakeApi, subtests: pytest.Subtests) -> None:
    all_refused(REFUSED, user(ready, api, "vision"), subtests)


def test_team_uses_what_is_its_own(ready: Any, api: FakeApi) -> None:
    client = user(ready, api, "vision")
    for bucket in ("datasets", "runs"):
        put(bucket, "vision/deep/er")(client)
        assert set(listing(bucket, "vision/", recursive=True)(client)) >= {"vision/own", "vision/deep/er"}
        assert fetch(bucket, "vision/deep/er")(client) == b"x"
        remove(bucket, "vision/deep/er")(client)
    assert fetch("datasets", "shared/mnist/a")(client) == b"all"
    assert listing("datasets", "shared/", recursive=True)(client) == ["shared/mnist/a"]
    assert fetch("raw-data", "scans/1")(client) == fetch("runs", WHEEL)(client) == b"all"
    assert "scans/1" in listing("raw-data", "", recursive=True)(client)


def test_team_takes_back_what_it_overwrote(ready: Any, api: FakeApi) -> None:
    client = user(ready, api, "vision")
    first = client.put_object("datasets", "vision/model", io.BytesIO(b"good"), 4).version_id
    client.put_object("datasets", "vision/model", io.BytesIO(b"bad"), 3)
    found = [entry.version_id for entry in client.list_objects("datasets", "vision/model", include_version=True)]
    assert first in found and len(found) == 2
    assert client.get_object("datasets", "vision/model", version_id=first).read() == b"good"
    with pytest.raises(S3Error, match="AccessDenied"):  # the older version is out of reach of mistakes
        client.remove_object("datasets", "vision/model", version_id=first)


def test_removed_team_loses_its_user_and_keeps_its_data(ready: Any, contract: dict[str, Any], api: FakeApi) -> None:
    contract["teams"] = contract["teams"][:1]
    s3_users.ensure_teams(contract, api, KEEP)  # type: ignore[arg-type]
    with pytest.raises(S3Error, match="InvalidAccessKeyId"):
        fetch("runs", "speech/own")(user(ready, api, "speech"))
    assert fetch("runs", "vision/own")(user(ready, api, "vision")) == b"own"
    assert fetch("runs", "speech/own")(ready.admin) == b"own"
    assert set(accounts.open_store(contract).held()) == {"trainyard", "trainyard-team-vision"}


def test_secret_that_names_another_owners_key_is_refused(ready: Any, contract: dict[str, Any], api: FakeApi) -> None:
    own = dict(api.secrets["speech"])
    api.secrets["vision"]["access-key"] = own["access-key"]
    with pytest.raises(PlatformError, match=f"access key {own['access-key']} of trainyard-team-vision is .*'s: delete"):
        s3_users.ensure_teams(contract, api, KEEP)  # type: ignore[arg-type]
    assert fetch("runs", "speech/own")(user(ready, api, "speech")) == b"own"


def test_missing_secret_is_named(ready: Any, contract: dict[str, Any], api: FakeApi) -> None:
    del api.secrets["speech"]
    with pytest.raises(PlatformError, match="Secret trainyard-s3 of team speech can't be read"):
        s3_users.ensure_teams(contract, api, KEEP)  # type: ignore[arg-type]


def test_platform_user_has_the_contracts_rights(ready: Any, environment: dict[str, str]) -> None:
    own = ready.client(environment["S3_ACCESS_KEY"], environment["S3_SECRET_KEY"])
    put("datasets", "shared/mnist/b")(own)
    remove("datasets", "shared/mnist/b")(own)
    assert fetch("raw-data", "scans/1")(own) == b"all"
    with pytest.raises(S3Error, match="AccessDenied"):
        put("raw-data", "scans/2")(own)


def test_external_store_gets_its_policies_published(contract: dict[str, Any], api: FakeApi) -> None:
    contract["storage"]["s3"] |= {"mode": "external", "users": "manual"}
    s3_users.ensure_teams(contract, api, KEEP)  # type: ignore[arg-type]
    published = api.applied[0]
    assert published["metadata"] == {"name": "trainyard-s3-policies", "namespace": "trainyard-system"}
    assert set(published["data"]) == {"trainyard.json", "trainyard-team-vision.json", "trainyard-team-speech.json"}
    policy = json.loads(published["data"]["trainyard-team-vision.json"])
    assert "arn:aws:s3:::runs/vision/*" in json.dumps(policy)
    assert "speech" not in json.dumps(policy)
