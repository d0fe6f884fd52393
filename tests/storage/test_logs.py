"""Logs on real stores: a team reads its own and changes none; who writes them sees none; they end in time."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from cluster import FakeApi
from minio import Minio
from minio.error import S3Error

from trainyard.training import kept
from trainyard_agent import accounts, buckets, objects, s3_users, store
from trainyard_agent.say import PlatformError

Act = Callable[[Minio], Any]
KEEP = timedelta(days=7)
KEY = "LOGWRITER0ABCDEFGHIJ", "log-writer-secret-key"
OURS, THEIRS = "vision/digits-master-0/u1/pytorch/1.json", "speech/digits-master-0/u2/pytorch/1.json"
pytestmark = pytest.mark.parametrize("server", ["minio", "gateway"], indirect=True)


def one(text: str) -> bytes:
    line = {"timeUnixNano": "1", "body": {"stringValue": text}}
    return json.dumps({"resourceLogs": [{"scopeLogs": [{"logRecords": [line]}]}]}).encode()


@pytest.fixture
def contract(contract: dict[str, Any]) -> dict[str, Any]:
    return contract | {"logs": {"bucket": "logs", "retentionDays": 30}}


@pytest.fixture
def api() -> FakeApi:
    return FakeApi("vision", "speech")


@pytest.fixture
def ready(contract: Any, clock: Any, environment: Any, server: Any, api: FakeApi, monkeypatch: Any) -> Any:
    for name, value in (("ENDPOINT", server.root.endpoint), ("ACCESS_KEY", KEY[0]), ("SECRET_KEY", KEY[1])):
        monkeypatch.setenv(f"LOGS_{name}", value)
    buckets.ensure(contract, clock)
    s3_users.ensure_teams(contract, api, KEEP)  # type: ignore[arg-type]
    return server


@pytest.fixture
def writer(ready: Any) -> Minio:
    """The collector's user, with a log of each team there."""
    client: Minio = ready.client(*KEY)
    for key in (OURS, THEIRS):
        put(key, one(key.partition("/")[0]))(client)
    return client


@pytest.fixture
def vision(ready: Any, api: FakeApi) -> Minio:
    return ready.client(api.secrets["vision"]["access-key"], api.secrets["vision"]["secret-key"])  # type: ignore[no-any-return]


def put(key: str, data: bytes = b"x", bucket: str = "logs") -> Act:
    return lambda client: client.put_object(bucket, key, io.BytesIO(data), len(data))


def listing(prefix: str, **more: Any) -> Act:
    return lambda client: [entry.object_name for entry in client.list_objects("logs", prefix, **more)]


def fetch(key: str, bucket: str = "logs") -> Act:
    return lambda client: client.get_object(bucket, key).read()


def remove(key: str) -> Act:
    return lambda client: client.remove_object("logs", key)


OF_A_TEAM: dict[str, Act] = {
    "read another team's log": fetch(THEIRS),
    "list another team's runs": listing("speech/"),
    "list another team's runs by the name of its own": listing("speech/digits"),
    "list the names of all teams": listing(""),
    "list what begins like another team": listing("s"),
    "list all versions": listing("", include_version=True),
    "write a log of its own": put("vision/digits-master-0/u1/pytorch/2.json"),
    "change a log of its own": put(OURS),
    "delete a log of its own": remove(OURS),
    "write a log of another team": put(THEIRS),
    "drop the retention": lambda client: client.delete_bucket_lifecycle("logs"),
}
OF_THE_WRITER: dict[str, Act] = {
    "read a log": fetch(OURS),
    "list logs": listing("vision/"),
    "delete a log": remove(OURS),
    "write results": put("vision/x", bucket="runs"),
    "read data": fetch("shared/mnist/a", bucket="datasets"),
    "make a bucket": lambda client: client.make_bucket("mine"),
    "drop the retention": lambda client: client.delete_bucket_lifecycle("logs"),
}


def test_a_team_reads_its_own_and_no_other(writer: Minio, vision: Minio, subtests: pytest.Subtests) -> None:
    assert fetch(OURS)(vision) == one("vision")
    assert list(listing("vision/", recursive=True)(vision)) == [OURS]
    for attempt, act in OF_A_TEAM.items():
        with subtests.test(attempt), pytest.raises(S3Error) as refusal:
            act(vision)
        assert refusal.value.code == "AccessDenied", attempt


def test_who_writes_can_do_nothing_else(writer: Minio, subtests: pytest.Subtests) -> None:
    for attempt, act in OF_THE_WRITER.items():
        with subtests.test(attempt), pytest.raises(S3Error) as refusal:
            act(writer)
        assert refusal.value.code == "AccessDenied", attempt


def test_the_platform_reads_all_and_writes_none(writer: Minio, ready: Any, environment: dict[str, str]) -> None:
    own = ready.client(environment["S3_ACCESS_KEY"], environment["S3_SECRET_KEY"])
    assert fetch(THEIRS)(own) == one("speech")
    with pytest.raises(S3Error, match="AccessDenied"):
        remove(THEIRS)(own)


def test_logs_end_after_their_days(ready: Any) -> None:
    [rule] = [r for r in ready.admin.get_bucket_lifecycle("logs").rules if r.rule_id == "trainyard-expire"]
    assert rule.expiration.days == 30


Names = list[str]  # said here, since a method of Pod is called list


class Pod:
    """What `trainyard` asks a pod of a team to do, with that team's keys."""

    def __init__(self, client: Minio) -> None:
        self.client = client

    def folders(self, begun: str) -> Names:
        return objects.folders(self.client, *begun.split("/", 1))  # type: ignore[arg-type]

    def list(self, place: str) -> dict[str, int]:
        bucket, _, key = place.partition("/")
        return {entry.key: entry.size for entry in objects.listing(self.client, bucket, key)}

    def tree(self, place: str, folder: Path) -> Names:
        bucket, _, key = place.partition("/")
        for name in (names := list(self.list(place))):
            with open(folder / name, "wb") as file:
                objects.get(self.client, bucket, f"{key}/{name}", file)
        return names


def test_a_member_finds_the_team_s_log_and_none_of_another(writer: Minio, vision: Minio) -> None:
    [log] = kept.logs(Pod(vision), "logs/vision", "digits")  # type: ignore[arg-type]
    assert [line.text for line in log.lines] == ["vision"]
    with pytest.raises(PlatformError, match="AccessDenied"):
        list(kept.logs(Pod(vision), "logs/speech", "digits"))  # type: ignore[arg-type]


def test_what_is_stored_compressed_comes_as_it_lies_there(writer: Minio, vision: Minio, ready: Any) -> None:
    """A site's collector may mark its objects so; a client that unpacks them would get other bytes than it was told."""
    import gzip

    packed = gzip.compress(one("packed"))
    key = "vision/packed-master-0/u/pytorch/1.json.gz"
    headers = {"Content-Encoding": "gzip"}
    ready.admin.put_object("logs", key, io.BytesIO(packed), len(packed), metadata=headers)
    [log] = kept.logs(Pod(vision), "logs/vision", "packed")  # type: ignore[arg-type]
    assert [line.text for line in log.lines] == ["packed"]


def test_a_new_key_ends_the_former_one(contract: Any, clock: Any, ready: Any, monkeypatch: Any) -> None:
    monkeypatch.setenv("LOGS_ACCESS_KEY", "LOGWRITER1ABCDEFGHIJ")
    buckets.ensure(contract, clock)
    put("vision/a/u/c/1.json")(ready.client("LOGWRITER1ABCDEFGHIJ", KEY[1]))
    with pytest.raises(S3Error, match="InvalidAccessKeyId"):
        put("vision/a/u/c/2.json")(ready.client(*KEY))


def test_without_logs_their_writer_is_gone_and_what_was_written_stays(
    contract: Any, writer: Minio, ready: Any, api: FakeApi
) -> None:
    del contract["logs"]
    s3_users.ensure_teams(contract, api, KEEP)  # type: ignore[arg-type]
    assert "trainyard-logs" not in accounts.open_store(contract).held()
    with pytest.raises(S3Error, match="InvalidAccessKeyId"):
        put(OURS)(writer)
    assert fetch(OURS)(ready.admin) == one("vision")


def test_an_external_store_is_told_what_to_permit(contract: Any, api: FakeApi) -> None:
    contract["storage"]["s3"] |= {"mode": "external", "users": "manual"}
    s3_users.ensure_teams(contract, api, KEEP)  # type: ignore[arg-type]
    published = api.applied[0]["data"]
    assert json.loads(published["trainyard-logs.json"])["Statement"] == [
        {"Effect": "Allow", "Action": ["s3:PutObject"], "Resource": ["arn:aws:s3:::logs/*"]}
    ]
    assert "arn:aws:s3:::logs/vision/*" in published["trainyard-team-vision.json"]


def test_the_bucket_s_writer_needs_no_environment_where_logs_are_off(
    contract: Any, clock: Any, environment: Any, server: Any
) -> None:
    del contract["logs"]
    buckets.ensure(contract, clock)
    assert store.access().user == environment["S3_ACCESS_KEY"]
