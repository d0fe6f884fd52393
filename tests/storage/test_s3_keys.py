"""Keys of teams on real stores: generated, found again, replaced while jobs that hold the former one go on."""

import io
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from cluster import FakeApi, ago, pod
from minio.error import S3Error

from trainyard_agent.store import accounts, buckets, s3_keys, s3_users
from trainyard_agent.store.accounts_keys import Key
from trainyard_agent.store.s3_policies import team_policy

KEEP = timedelta(days=7)
pytestmark = pytest.mark.parametrize("server", ["minio", "gateway"], indirect=True)
LEGACY = Key("trainyard-team-vision", "secret-of-vision-0123456789")


@pytest.fixture
def made(contract: dict[str, Any], clock: Any, environment: dict[str, str], server: Any) -> Any:
    """A store with its buckets."""
    buckets.ensure(contract, clock)
    return server


def reads(server: Any, key: Key) -> bool:
    """Does this key open its team's prefix? Only a key that the store doesn't know is a no."""
    client = server.client(key.access, key.secret)
    try:
        client.put_object("runs", "vision/x", io.BytesIO(b"x"), 1)
        return bool(client.get_object("runs", "vision/x").read() == b"x")
    except S3Error as error:
        assert error.code == "InvalidAccessKeyId", error
        return False


def held(api: FakeApi, team: str = "vision") -> Key:
    return Key(api.secrets[team]["access-key"], api.secrets[team]["secret-key"])


def ensure(contract: dict[str, Any], api: FakeApi) -> None:
    s3_users.ensure_teams(contract, api, KEEP)  # type: ignore[arg-type]


def sweep(contract: dict[str, Any], api: FakeApi, now: datetime) -> int:
    teams = [team["name"] for team in contract["teams"]]
    return s3_keys.sweep(api, lambda: accounts.open_store(contract), teams, now)  # type: ignore[arg-type]


def legacy(contract: dict[str, Any], api: FakeApi) -> None:
    """The store and the Secret as 0.2.0 left them."""
    policy = team_policy(contract["storage"]["buckets"], "vision")
    accounts.open_store(contract).give("trainyard-team-vision", LEGACY, policy)
    api.secrets["vision"] |= {"access-key": LEGACY.access, "secret-key": LEGACY.secret}


def test_keys_are_made_once_and_say_nothing(made: Any, contract: dict[str, Any], api: FakeApi) -> None:
    ensure(contract, api)
    first = held(api)
    assert len(first.access) == 20 and len(first.secret) == 40 and first.access != held(api, "speech").access
    assert "vision" not in first.access.lower()
    ensure(contract, api)
    assert held(api) == first and reads(made, first)


def test_upgrade_replaces_a_key_while_a_pod_holds_it(made: Any, contract: dict[str, Any], api: FakeApi) -> None:
    legacy(contract, api)
    api.pods["vision"] = [pod("train-0", ago(hours=3)), pod("old", ago(hours=9), phase="Succeeded")]
    ensure(contract, api)
    assert held(api).access != LEGACY.access
    assert reads(made, LEGACY) and reads(made, held(api))
    assert sweep(contract, api, datetime.now(UTC) + timedelta(hours=1)) == 0
    assert reads(made, LEGACY)
    ensure(contract, api)  # an upgrade meanwhile doesn't end it either
    assert reads(made, LEGACY)
    api.pods["vision"][0]["status"]["phase"] = "Succeeded"
    assert sweep(contract, api, datetime.now(UTC) + timedelta(hours=2)) == 1
    assert not reads(made, LEGACY) and reads(made, held(api))
    assert s3_keys.FORMER not in api.notes["vision"]


def test_former_key_ends_with_the_longest_deadline(made: Any, contract: dict[str, Any], api: FakeApi) -> None:
    legacy(contract, api)
    api.pods["vision"] = [pod("endless", ago(hours=3))]
    ensure(contract, api)
    assert sweep(contract, api, datetime.now(UTC) + KEEP - timedelta(minutes=5)) == 0 and reads(made, LEGACY)
    assert sweep(contract, api, datetime.now(UTC) + KEEP + timedelta(minutes=5)) == 1 and not reads(made, LEGACY)


def test_rollback_and_forth(made: Any, contract: dict[str, Any], api: FakeApi) -> None:
    legacy(contract, api)
    ensure(contract, api)
    second = held(api)
    # 0.2.0's manifest brings its key back into the Secret, and its setup job removes every other user of the team.
    legacy(contract, api)
    accounts.open_store(contract).take("trainyard-team-vision", second.access)
    api.pods["vision"] = [pod("train-0", ago(seconds=5))]
    ensure(contract, api)
    assert held(api).access not in (LEGACY.access, second.access)
    assert reads(made, LEGACY) and reads(made, held(api)) and not reads(made, second)


def test_a_key_can_be_replaced_when_asked(made: Any, contract: dict[str, Any], api: FakeApi) -> None:
    ensure(contract, api)
    first = held(api)
    api.notes["vision"][s3_keys.ROTATE] = "true"
    ensure(contract, api)
    assert held(api) != first and reads(made, first) and reads(made, held(api))
    assert s3_keys.ROTATE not in api.notes["vision"]


def test_deleted_secret_ends_its_key_at_once(made: Any, contract: dict[str, Any], api: FakeApi) -> None:
    ensure(contract, api)
    first, api.secrets["vision"] = held(api), {}
    ensure(contract, api)
    assert not reads(made, first) and reads(made, held(api))


def test_changed_secret_key_replaces_the_former(made: Any, contract: dict[str, Any], api: FakeApi) -> None:
    ensure(contract, api)
    api.secrets["vision"]["secret-key"] = "another-key-0123456789-another"
    old = Key(held(api).access, "not-this-key-any-more")
    ensure(contract, api)
    assert reads(made, held(api))
    with pytest.raises(S3Error, match="SignatureDoesNotMatch"):
        made.client(old.access, old.secret).get_object("runs", "vision/x")


def test_former_key_may_no_more_than_the_present_one(made: Any, contract: dict[str, Any], api: FakeApi) -> None:
    legacy(contract, api)
    ensure(contract, api)
    assert reads(made, LEGACY)
    runs = next(bucket for bucket in contract["storage"]["buckets"] if bucket["name"] == "runs")
    runs["teams"] = "none"
    ensure(contract, api)
    for key in (LEGACY, held(api)):
        with pytest.raises(S3Error, match="AccessDenied"):
            made.client(key.access, key.secret).put_object("runs", "vision/x", io.BytesIO(b"x"), 1)
