"""Users of the object store: the platform's, those with one purpose, and one per team that reaches only its prefix."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any

from trainyard_agent.api import Api, needed
from trainyard_agent.say import PlatformError, say
from trainyard_agent.store import accounts, connect, logs, s3_keys
from trainyard_agent.store.accounts import Accounts
from trainyard_agent.store.accounts_keys import Key
from trainyard_agent.store.s3_policies import KFP, LOGS, PLATFORM, TEAM, platform_policy, single, team_policy

POLICIES = "trainyard-s3-policies"
MANAGER = "trainyard-setup"
# Users with one purpose: the prefix of their variables, what they may do, and why they are removed.
SINGLE = {
    LOGS: ("LOGS", "write logs", "logs are not kept any more"),
    KFP: ("KFP", "read what runs stored", "the option kfpApi is off"),
}


def ensure_platform(contract: dict[str, Any]) -> None:
    """Create the platform's user, with the generated keys of the environment."""
    own = connect.access()
    users = accounts.open_store(contract)
    _only(users, PLATFORM, Key(own.user, own.password), platform_policy(logs.all_buckets(contract)))
    say(f"user {own.user} may use the buckets as the contract says")
    for owner, policy in single(contract).items():
        prefix, may, _ = SINGLE[owner]
        one = connect.access(prefix)
        _only(users, owner, Key(one.user, one.password), policy)
        say(f"user {one.user} may {may}, and nothing else")


def _only(users: Accounts, owner: str, key: Key, policy: dict[str, Any]) -> None:
    """Make this key the owner's only one."""
    users.give(owner, key, policy)
    for access in sorted(users.held().get(owner, frozenset()) - {key.access}):
        users.take(owner, access)
        say(f"access key {access} ended: no Secret has it any more")


def _publish(api: Api, policies: dict[str, dict[str, Any]]) -> None:
    """Write the policies to a ConfigMap for the engineer: we can't make an external store's users."""
    body = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": POLICIES, "namespace": api.namespace},
        "data": {f"{name}.json": json.dumps(policy, indent=2) for name, policy in policies.items()},
    }
    with needed(f"ConfigMap {POLICIES} was not written"):
        api.apply(f"/api/v1/namespaces/{api.namespace}/configmaps/{POLICIES}", body, manager=MANAGER)
    say(f"the store is external: ConfigMap {POLICIES} has the policies that its users need")


def ensure_teams(contract: dict[str, Any], api: Api, keep: timedelta) -> None:
    """Give each team a key and a policy, and remove those of teams that are gone. Raises PlatformError.

    External stores have no common interface for users: their policies are published for an engineer to apply.

    Args:
        keep: how long a replaced key stays valid at most.
    """
    buckets, teams = logs.all_buckets(contract), [team["name"] for team in contract.get("teams") or []]
    policies = {team: team_policy(buckets, team) for team in teams}
    if not accounts.administered(contract):
        named = {f"{TEAM}{team}": policies[team] for team in teams}
        _publish(api, {PLATFORM: platform_policy(buckets)} | single(contract) | named)
        return
    try:
        users = accounts.open_store(contract)
        held = users.held()
        for team in teams:
            s3_keys.ensure(api, users, team, policies[team], held, keep=keep, ca=connect.access().ca)
        stay = {PLATFORM, *single(contract), *(f"{TEAM}{team}" for team in teams)}
        for owner in sorted(set(held) - stay):
            users.drop(owner)
            why = SINGLE[owner][2] if owner in SINGLE else "its team is gone from the values"
            say(f"user {owner} removed: {why}; what it stored stays")
    except PlatformError:
        raise
    except Exception as error:
        raise PlatformError(f"the object store refused a team's user: {type(error).__name__}: {error}") from error
