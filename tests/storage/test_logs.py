"""Logs on real stores: a team reads its own and changes none; who writes them sees none; they end in time."""

import gzip
import io
import json
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from acts import Act, all_refused, fetch, listing, put, remove
from cluster import KEY, FakeApi
from minio import Minio
from minio.error import S3Error

from servers import Server
from trainyard.training import kept
from trainyard_agent.say import PlatformError
from trainyard_agent.store import accounts, buckets, connect, objects, s3_users

OURS, THEIRS = "vision/digits-master-0/u1/pytorch/1.json", "speech/digits-master-0/u2/pytorch/1.json"
pytestmark = pytest.mark.parametrize("server", ["minio", "gateway"], indirect=True)


def one(text: str) -> bytes:
    line = {"timeUnixNano": "1", "body": {"stringValue": text}}
    return json.dumps({"resourceLogs": [{"scopeLogs": [{"logRecords": [line]}]}]}).encode()


@pytest.fixture
def ready(logged: None, ready: Server) -> Server:
    """Logs come into it, too."""
    return ready


@pytest.fixture
def writer(ready: Any) -> Minio:
    """The collector's user, with a log of each team there."""
    client: Minio = ready.client(*KEY)
    for key in (OURS, THEIRS):
        put("logs", key, one(key.partition("/")[0]))(client)
    return client


@pytest.fixture
def vision(ready: Any, api: FakeApi) -> Minio:
    return ready.client(api.secrets["vision"]["access-key"], api.secrets["vision"]["secret-key"])  # type: ignore[no-any-return]


OF_A_TEAM: dict[str, Act] = {
    "read another team's log": fetch("logs", THEIRS),
    "list another team's runs": listing("logs", "speech/"),
    "list another team's runs by the name of its own": listing("logs", "speech/digits"),
    "list the names of all teams": listing("logs", ""),
    "list what begins like another team": listing("logs", "s"),
    "list all versions": listing("logs", "", include_version=True),
    "write a log of its own": put("logs", "vision/digits-master-0/u1/pytorch/2.json"),
    "change a log of its own": put("logs", OURS),
    "delete a log of its own": remove("logs", OURS),
    "write a log of another team": put("logs", THEIRS),
    "drop the retention": lambda client: client.delete_bucket_lifecycle("logs"),
}
OF_THE_WRITER: dict[str, Act] = {
    "read a log": fetch("logs", OURS),
    "list logs": listing("logs", "vision/"),
    "delete a log": remove("logs", OURS),
    "write results": put("runs", "vision/x"),
    "read data": fetch("datasets", "shared/mnist/a"),
    "make a bucket": lambda client: client.make_bucket("mine"),
    "drop the retention": lambda client: client.delete_bucket_lifecycle("logs"),
}


def test_a_team_reads_its_own_and_no_other(writer: Minio, vision: Minio, subtests: pytest.Subtests) -> None:
    assert fetch("logs", OURS)(vision) == one("vision")
    assert list(listing("logs", "vision/", recursive=True)(vision)) == [OURS]
    all_refused(OF_A_TEAM, vision, subtests)


def test_who_writes_can_do_nothing_else(writer: Minio, subtests: pytest.Subtests) -> None:
    all_refused(OF_THE_WRITER, writer, subtests)


def test_the_platform_reads_all_and_writes_none(writer: Minio, ready: Any, environment: dict[str, str]) -> None:
    own = ready.client(environment["S3_ACCESS_KEY"], environment["S3_SECRET_KEY"])
    assert fetch("logs", THEIRS)(own) == one("speech")
    with pytest.raises(S3Error, match="AccessDenied"):
        remove("logs", THEIRS)(own)


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
    packed = gzip.compress(one("packed"))
    key = "vision/packed-master-0/u/pytorch/1.json.gz"
    headers = {"Content-Encoding": "gzip"}
    ready.admin.put_object("logs", key, io.BytesIO(packed), len(packed), metadata=headers)
    [log] = kept.logs(Pod(vision), "logs/vision", "packed")  # type: ignore[arg-type]
    assert [line.text for line in log.lines] == ["packed"]


def test_a_new_key_ends_the_former_one(contract: Any, clock: Any, ready: Any, monkeypatch: Any) -> None:
    monkeypatch.setenv("LOGS_ACCESS_KEY", "LOGWRITER1ABCDEFGHIJ")
    buckets.ensure(contract, clock)
    put("logs", "vision/a/u/c/1.json")(ready.client("LOGWRITER1ABCDEFGHIJ", KEY[1]))
    with pytest.raises(S3Error, match="InvalidAccessKeyId"):
        put("logs", "vision/a/u/c/2.json")(ready.client(*KEY))


def test_without_logs_their_writer_is_gone_and_what_was_written_stays(
    contract: Any, writer: Minio, ready: Any, api: FakeApi
) -> None:
    del contract["logs"]
    s3_users.ensure_teams(contract, api, timedelta(days=7))  # type: ignore[arg-type]
    assert "trainyard-logs" not in accounts.open_store(contract).held()
    with pytest.raises(S3Error, match="InvalidAccessKeyId"):
        put("logs", OURS)(writer)
    assert fetch("logs", OURS)(ready.admin) == one("vision")


def test_an_external_store_is_told_what_to_permit(logged: None, contract: Any, api: FakeApi) -> None:
    contract["storage"]["s3"] |= {"mode": "external", "users": "manual"}
    s3_users.ensure_teams(contract, api, timedelta(days=7))  # type: ignore[arg-type]
    published = api.applied[0]["data"]
    assert json.loads(published["trainyard-logs.json"])["Statement"] == [
        {"Effect": "Allow", "Action": ["s3:PutObject"], "Resource": ["arn:aws:s3:::logs/*"]}
    ]
    assert "arn:aws:s3:::logs/vision/*" in published["trainyard-team-vision.json"]


def test_the_bucket_s_writer_needs_no_environment_where_logs_are_off(
    contract: Any, clock: Any, environment: Any, server: Any
) -> None:
    assert "logs" not in contract
    buckets.ensure(contract, clock)
    assert connect.access().user == environment["S3_ACCESS_KEY"]
