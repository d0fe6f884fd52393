"""MinIO's side doors: keys that a team makes for itself, its own password, what it learns of others.

Each was open in the server as upstream left it, or to the policies of 0.2.0.
"""

import io
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import wire
from cluster import FakeApi
from minio.error import MinioAdminException, S3Error

from servers import Server, start
from trainyard_agent.say import PlatformError
from trainyard_agent.store import accounts, connect
from trainyard_agent.store.accounts_keys import Key
from trainyard_agent.store.accounts_minio import MinioAccounts
from trainyard_agent.store.connect import Access
from trainyard_agent.store.s3_policies import team_policy


@pytest.fixture
def team(ready: Server, api: FakeApi) -> Access:
    """How team vision reaches the store, which holds an object of speech."""
    ready.admin.put_object("runs", "speech/secret-plan", io.BytesIO(b"plan"), 4)
    own = api.secrets["vision"]
    return replace(ready.root, user=own["access-key"], password=own["secret-key"])


def assume_role(to: Access) -> wire.Answer:
    """Ask for temporary keys."""
    body = b"Action=AssumeRole&Version=2011-06-15&DurationSeconds=3600"
    head = {"content-type": "application/x-www-form-urlencoded"}
    signed = wire.signed_headers(to, "POST", "/", wire.digest(body), extra=head, service="sts")
    return wire.send(to, "POST", "/", headers=signed, body=body)


DOORS: dict[str, Callable[[Access], Any]] = {
    "make a service account": lambda to: connect.admin(to).add_service_account(),
    "change its own secret key": lambda to: connect.admin(to).user_add(to.user, "a-key-of-my-own-0123"),
    "look at its own user": lambda to: connect.admin(to).user_info(to.user),
    "list users": lambda to: connect.admin(to).user_list(),
    "give itself all rights": lambda to: connect.admin(to).policy_set("consoleAdmin", user=to.user),
    "see sizes and prefixes of buckets": lambda to: connect.admin(to).info(),
}


@pytest.mark.parametrize("door", DOORS)
def test_team_is_refused_the_administration(team: Access, door: str) -> None:
    with pytest.raises(MinioAdminException, match=r"Access ?Denied"):
        DOORS[door](team)


def test_team_gets_no_temporary_keys(team: Access) -> None:
    answer = assume_role(team)
    assert (answer.status, answer.code) == (403, "AccessDenied"), answer


def test_team_learns_no_names_of_others(team: Access) -> None:
    path, query = "/minio/admin/v3/accountinfo", {"prefix-usage": "true"}
    signed = wire.signed_headers(team, "GET", path, wire.digest(b""), query=query)
    answer = wire.send(team, "GET", path, query=query, headers=signed)
    assert answer.status == 403 and "speech" not in answer.body, answer


def test_root_still_administers(server: Any) -> None:
    signed = wire.signed_headers(server.root, "GET", "/minio/admin/v3/accountinfo", wire.digest(b""))
    answer = wire.send(server.root, "GET", "/minio/admin/v3/accountinfo", headers=signed)
    assert answer.status == 200 and json.loads(answer.body)["AccountName"] == server.root.user


def test_keys_that_were_made_before_end_with_their_parent(team: Access, server: Any, contract: dict[str, Any]) -> None:
    root = connect.admin(server.root)
    root.user_add("parent-of-0-2-0", "secret-of-parent-0123")
    root.policy_set("readwrite", user="parent-of-0-2-0")
    parent = replace(server.root, user="parent-of-0-2-0", password="secret-of-parent-0123")
    child = json.loads(connect.admin(parent).add_service_account())["credentials"]
    temporary = assume_role(parent)
    assert temporary.status == 200
    key, secret, token = (
        temporary.body.partition(f"<{tag}>")[2].partition(f"</{tag}>")[0]
        for tag in ("AccessKeyId", "SecretAccessKey", "SessionToken")
    )
    assert server.client(child["accessKey"], child["secretKey"]).bucket_exists("runs")
    root.policy_set("trainyard-team-vision", user="parent-of-0-2-0")
    accounts.open_store(contract).take("trainyard-team-vision", "parent-of-0-2-0")
    with pytest.raises(S3Error, match="InvalidAccessKeyId"):
        server.client(child["accessKey"], child["secretKey"]).list_buckets()
    derived = replace(server.root, user=key, password=secret)
    extra = {"x-amz-security-token": token}
    signed = wire.signed_headers(derived, "GET", "/runs/speech/secret-plan", wire.digest(b""), extra=extra)
    assert wire.send(derived, "GET", "/runs/speech/secret-plan", headers=signed).status == 403


def test_root_key_in_a_teams_secret_is_refused(
    team: Access, server: Any, contract: dict[str, Any], environment: dict[str, str]
) -> None:
    with pytest.raises(PlatformError, match="is the root user's"):
        accounts.open_store(contract).give("trainyard-team-vision", Key(server.root.user, "x" * 20), {"Statement": []})


def test_root_key_changes_with_a_restart_and_users_stay(tmp_path: Path) -> None:
    process, before = start(tmp_path / "data", tmp_path / "certs", user="trainyard-root", password="p" * 40)
    try:
        before.admin.make_bucket("runs")
        policy = team_policy([{"name": "runs", "teams": "own"}], "vision")
        MinioAccounts(before.root).give("trainyard-team-vision", Key("A" * 20, "s" * 40), policy)
    finally:
        process.stop()
    process, after = start(tmp_path / "data", tmp_path / "certs")
    try:
        assert MinioAccounts(after.root).held() == {"trainyard-team-vision": frozenset({"A" * 20})}
        own = after.client("A" * 20, "s" * 40)
        own.put_object("runs", "vision/x", io.BytesIO(b"x"), 1)
        with pytest.raises(S3Error, match="InvalidAccessKeyId"):
            after.client("trainyard-root", "p" * 40).list_buckets()
    finally:
        process.stop()
