"""Buckets on a real MinIO: versioning and lifecycle as the contract says, again and again, and nothing of others."""

from typing import Any

import pytest
from acts import fetch, put
from minio import Minio
from minio.commonconfig import ENABLED, Filter
from minio.error import S3Error
from minio.lifecycleconfig import Expiration, LifecycleConfig, Rule

from trainyard_agent.say import PlatformError
from trainyard_agent.store import buckets


def rules_of(client: Minio, bucket: str) -> dict[str, Rule]:
    held = client.get_bucket_lifecycle(bucket)
    return {str(rule.rule_id): rule for rule in held.rules} if held else {}


@pytest.fixture
def ready(contract: dict[str, Any], clock: Any, environment: dict[str, str], server: Any) -> Minio:
    """The root's client of a store that was set up as the contract says."""
    buckets.ensure(contract, clock)
    return server.admin


def test_buckets_get_what_the_contract_says(ready: Minio) -> None:
    assert ready.get_bucket_versioning("raw-data").status == ENABLED
    assert ready.get_bucket_versioning("datasets").status == ENABLED
    assert ready.get_bucket_versioning("runs").status != ENABLED
    rule = rules_of(ready, "raw-data")["trainyard-noncurrent"]
    assert rule.noncurrent_version_expiration and rule.noncurrent_version_expiration.noncurrent_days == 90
    assert rule.expiration and rule.expiration.expired_object_delete_marker
    assert rules_of(ready, "runs") == {}


def test_second_time_changes_nothing(
    ready: Minio, contract: dict[str, Any], clock: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    capsys.readouterr()
    buckets.ensure(contract, clock)
    said = capsys.readouterr().out
    assert "bucket " not in said.replace("buckets", ""), said


def test_change_of_the_contract_follows_and_rules_of_others_stay(
    ready: Minio, contract: dict[str, Any], clock: Any
) -> None:
    own = Rule(ENABLED, Filter(prefix="tmp/"), rule_id="mine", expiration=Expiration(days=3))
    ready.set_bucket_lifecycle("runs", LifecycleConfig([own]))
    runs = contract["storage"]["buckets"][2]
    runs |= {"expireDays": 30, "noncurrentDays": 5, "versioning": True}
    buckets.ensure(contract, clock)
    held = rules_of(ready, "runs")
    assert set(held) == {"mine", "trainyard-expire", "trainyard-noncurrent"}
    expire = held["trainyard-expire"].expiration
    assert expire and expire.days == 30
    assert ready.get_bucket_versioning("runs").status == ENABLED
    runs |= {"expireDays": 0, "noncurrentDays": 0, "versioning": False}
    buckets.ensure(contract, clock)
    assert set(rules_of(ready, "runs")) == {"mine"}
    assert ready.get_bucket_versioning("runs").status == "Suspended"


def test_overwritten_object_comes_back(ready: Minio) -> None:
    put("datasets", "shared/a", b"first")(ready)
    put("datasets", "shared/a", b"second")(ready)
    ready.remove_object("datasets", "shared/a")
    with pytest.raises(S3Error, match="NoSuchKey"):
        fetch("datasets", "shared/a")(ready)
    versions = [
        entry
        for entry in ready.list_objects("datasets", "shared/a", include_version=True)
        if not entry.is_delete_marker
    ]
    texts = {fetch("datasets", "shared/a", version_id=entry.version_id)(ready) for entry in versions}
    assert texts == {b"first", b"second"}


def test_external_store_gets_a_rule_for_uploads() -> None:
    rules = buckets.rules({"name": "b"}, 7)
    abort = rules[0].abort_incomplete_multipart_upload
    assert [rule.rule_id for rule in rules] == ["trainyard-uploads"]
    assert abort and abort.days_after_initiation == 7


def test_external_store_is_left_alone_when_told(
    ready: Minio, contract: dict[str, Any], clock: Any, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    contract["storage"]["s3"] |= {"mode": "external", "createBuckets": False}
    monkeypatch.setenv("S3_ACCESS_KEY", ready._provider.retrieve().access_key)
    monkeypatch.setenv("S3_SECRET_KEY", ready._provider.retrieve().secret_key)
    contract["storage"]["buckets"][2]["versioning"] = True
    buckets.ensure(contract, clock)
    assert ready.get_bucket_versioning("runs").status != ENABLED
    assert "bucket runs differs, the contract wants versioning on; lifecycle: uploads" in capsys.readouterr().out
    contract["storage"]["buckets"].append({"name": "absent", "access": "read"})
    with pytest.raises(PlatformError, match=r"bucket absent does not exist, and storage.s3.createBuckets is false"):
        buckets.ensure(contract, clock)
