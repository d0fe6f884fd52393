"""Users of the object store: the platform's own, and one a team that reaches its own prefix only."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any

from trainyard_agent import accounts, s3_keys, store
from trainyard_agent.accounts_keys import Key
from trainyard_agent.api import Api, ApiError
from trainyard_agent.s3_policies import PLATFORM, TEAM, platform_policy, team_policy
from trainyard_agent.say import PlatformError, say

POLICIES = "trainyard-s3-policies"
MANAGER = "trainyard-setup"


def ensure_platform(contract: dict[str, Any]) -> None:
    """Make the platform's own user, with the generated keys of the environment."""
    own = store.access()
    policy = platform_policy(contract["storage"]["buckets"])
    users = accounts.open_store(contract)
    users.give(PLATFORM, Key(own.user, own.password), policy)
    for access in sorted(users.held().get(PLATFORM, frozenset()) - {own.user}):
        users.take(PLATFORM, access)
        say(f"access key {access} ended: no Secret has it any more")
    say(f"user {own.user} may use the buckets as the contract says")


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


def ensure_teams(contract: dict[str, Any], api: Api, keep: timedelta) -> None:
    """A key and a policy for each team, and none for teams that are gone. Raises PlatformError.

    An external store has no interface for users that all share: its policies are published for an engineer to apply.

    Args:
        keep: how long a key that is replaced goes on at most.
    """
    buckets, teams = contract["storage"]["buckets"], [team["name"] for team in contract.get("teams") or []]
    policies = {team: team_policy(buckets, team) for team in teams}
    if not accounts.administered(contract):
        _publish(api, {PLATFORM: platform_policy(buckets)} | {f"{TEAM}{team}": policies[team] for team in teams})
        return
    try:
        users = accounts.open_store(contract)
        held = users.held()
        for team in teams:
            s3_keys.ensure(api, users, team, policies[team], held, keep=keep, ca=store.access().ca)
        for owner in sorted(set(held) - {PLATFORM, *(f"{TEAM}{team}" for team in teams)}):
            users.drop(owner)
            say(f"user {owner} removed: its team is gone from the values; what it stored stays")
    except PlatformError:
        raise
    except Exception as error:
        raise PlatformError(f"the object store refused a team's user: {type(error).__name__}: {error}") from error
