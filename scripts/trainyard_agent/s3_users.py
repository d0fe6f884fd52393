"""Users of the object store and their rights: the platform's own, and one a team that reaches its own prefix only."""

from __future__ import annotations

import base64
import json
from dataclasses import replace
from typing import Any

from trainyard_agent import store
from trainyard_agent.api import Api, ApiError
from trainyard_agent.say import PlatformError, say
from trainyard_agent.store import Access

PLATFORM = "trainyard"
TEAM = "trainyard-team-"
SHARED = "shared"
SECRET = "trainyard-s3"
POLICIES = "trainyard-s3-policies"
MANAGER = "trainyard-setup"

READ = ["s3:GetObject", "s3:GetObjectVersion"]
WRITE = [*READ, "s3:PutObject", "s3:DeleteObject", "s3:AbortMultipartUpload", "s3:ListMultipartUploadParts"]
LIST = ["s3:ListBucket", "s3:ListBucketVersions"]


def _allow(actions: list[str], resource: str, *, prefixes: list[str] | None = None) -> dict[str, Any]:
    """A statement on a bucket or on objects, named as `bucket` or `bucket/keys`."""
    statement: dict[str, Any] = {"Effect": "Allow", "Action": actions, "Resource": [f"arn:aws:s3:::{resource}"]}
    if prefixes:
        statement["Condition"] = {"StringLike": {"s3:prefix": prefixes}}
    return statement


def platform_policy(buckets: list[dict[str, Any]]) -> dict[str, Any]:
    """The platform's own rights: for each bucket those of its access, nothing else."""
    statements = []
    for bucket in buckets:
        name, actions = bucket["name"], WRITE if bucket["access"] == "write" else READ
        statements.append(_allow([*LIST, "s3:GetBucketLocation"], name))
        statements.append(_allow(actions, f"{name}/*"))
    return {"Version": "2012-10-17", "Statement": statements}


def team_policy(buckets: list[dict[str, Any]], team: str) -> dict[str, Any]:
    """A team's rights. What isn't named is denied: other teams' prefixes, even their names, and all else."""
    statements = []
    for bucket in buckets:
        name, right = bucket["name"], bucket.get("teams", "none")
        if right == "none":
            continue
        statements.append(_allow(["s3:GetBucketLocation"], name))
        if right == "read":
            statements += [_allow(LIST, name), _allow(READ, f"{name}/*")]
            continue
        statements.append(_allow(LIST, name, prefixes=[f"{team}/*", f"{SHARED}/*"]))
        statements.append(_allow(WRITE, f"{name}/{team}/*"))
        statements.append(_allow(READ, f"{name}/{SHARED}/*"))
        # MinIO takes the right to delete an object for the right to delete its versions, unless that is denied.
        statements.append(_allow(["s3:DeleteObjectVersion"], f"{name}/*") | {"Effect": "Deny"})
    return {"Version": "2012-10-17", "Statement": statements}


class Users:
    """MinIO's users. Its administration costs a second a call (both ends stretch the password): ask rarely."""

    def __init__(self, root: Access) -> None:
        self.root, self.admin = root, store.admin(root)
        self.held = {
            user: str(about.get("policyName", "")) for user, about in json.loads(self.admin.user_list()).items()
        }

    def give(self, user: str, password: str, name: str, policy: dict[str, Any]) -> None:
        """Make or correct one user with one policy, both by name."""
        self.admin.policy_add(name, policy=policy)
        if user not in self.held or not self._knows(user, password):
            self.admin.user_add(user, password)
        if self.held.get(user) != name:
            self.admin.policy_set(name, user=user)
        self.held[user] = name

    def _knows(self, user: str, password: str) -> bool:
        """Is this the user's present password?"""
        from minio.error import S3Error

        try:
            store.client(replace(self.root, user=user, password=password)).list_buckets()
        except S3Error as error:
            return error.code == "AccessDenied"
        return True

    def remove_teams_but(self, teams: list[str]) -> None:
        """Remove users and policies of teams that are gone. Data stays."""
        keep = {f"{TEAM}{team}" for team in teams}
        for user, name in self.held.items():
            if name.startswith(TEAM) and user not in keep:
                self.admin.user_remove(user)
                say(f"user {user} removed: it was {name}'s")
        for name in json.loads(self.admin.policy_list()):
            if name.startswith(TEAM) and name not in keep:
                self.admin.policy_remove(name)
                say(f"policy {name} removed: its team is gone from the values; what it stored stays")


def ensure_platform(contract: dict[str, Any]) -> None:
    """Make the platform's own user in MinIO, with the generated keys of the environment."""
    own = store.access()
    policy = platform_policy(contract["storage"]["buckets"])
    Users(store.access(root=True)).give(own.user, own.password, PLATFORM, policy)
    say(f"user {own.user} may use the buckets as the contract says")


def _keys(api: Api, team: str) -> tuple[str, str]:
    """Access key and secret key that the chart generated for a team."""
    try:
        data = api.get(f"/api/v1/namespaces/{team}/secrets/{SECRET}").get("data") or {}
        user, password = (base64.b64decode(data[key]).decode() for key in ("access-key", "secret-key"))
    except ApiError as error:
        raise PlatformError(f"Secret {SECRET} of team {team} can't be read: {error.message}") from error
    except KeyError as error:
        raise PlatformError(f"Secret {SECRET} in namespace {team} has no {error.args[0]}") from error
    if user != f"{TEAM}{team}":
        # Whoever changed it might mean to take over another team's user.
        raise PlatformError(
            f"Secret {SECRET} in namespace {team} names user {user}, not {TEAM}{team}: delete it and upgrade again"
        )
    return user, password


def _publish(api: Api, policies: dict[str, dict[str, Any]]) -> None:
    """Write the policies where an engineer finds them: an external store's users are not ours to make."""
    body = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": POLICIES, "namespace": api.namespace},
        "data": {f"{name}.json": json.dumps(policy, indent=2) for name, policy in policies.items()},
    }
    try:
        api.apply(f"/api/v1/namespaces/{api.namespace}/configmaps/{POLICIES}", body, manager=MANAGER)
    except ApiError as error:
        raise PlatformError(f"ConfigMap {POLICIES} was not written: {error.message}") from error
    say(f"the store is external: ConfigMap {POLICIES} has the policies that its users need")


def ensure_teams(contract: dict[str, Any], api: Api) -> None:
    """A user and a policy for each team, and none for teams that are gone. Raises PlatformError.

    An external store has no interface for users that all share: its policies are published for an engineer to apply.
    """
    buckets, teams = contract["storage"]["buckets"], [team["name"] for team in contract.get("teams") or []]
    policies = {f"{TEAM}{team}": team_policy(buckets, team) for team in teams}
    if contract["storage"]["s3"]["mode"] == "external":
        _publish(api, {PLATFORM: platform_policy(buckets)} | policies)
        return
    keys = {team: _keys(api, team) for team in teams}
    try:
        users = Users(store.access(root=True))
        for team, (user, password) in keys.items():
            users.give(user, password, f"{TEAM}{team}", policies[f"{TEAM}{team}"])
            say(f"user {user} reaches the prefix of team {team} and what is shared")
        users.remove_teams_but(teams)
    except Exception as error:
        raise PlatformError(f"MinIO refused a team's user: {type(error).__name__}: {error}") from error
