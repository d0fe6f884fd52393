"""Each team's key: made here, kept in the team's Secret, replaced while jobs that use the former one continue.

The former key's name stays noted on the Secret. It ends when no pod that started with it is left, and at the latest
when the longest possible job is over.
"""

from __future__ import annotations

import base64
import functools
import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from trainyard_agent.api import Api, ApiError, needed
from trainyard_agent.say import PlatformError, say
from trainyard_agent.store import key_ages
from trainyard_agent.store.accounts import Accounts, open_store
from trainyard_agent.store.accounts_keys import Key, fresh
from trainyard_agent.store.s3_policies import TEAM

SECRET = "trainyard-s3"
FORMER = "trainyard.io/former-keys"
ROTATE = "trainyard.io/rotate-key"
MANAGER = "trainyard-setup"
# kubelet may still start a container with a Secret's content of this long ago
SLACK = timedelta(minutes=2)
# Pods outside of the teams' namespaces, which nobody checks, have this long to switch to TLS.
LEAST = timedelta(hours=1)
ENDED = ("Succeeded", "Failed")


@dataclass(frozen=True)
class ReplacedKey:
    """A key that was replaced at `since`, and ends at `until` at the latest."""

    access: str
    since: datetime
    until: datetime


class Secret:
    """A team's Secret as it was read."""

    def __init__(self, api: Api, team: str) -> None:
        self.api, self.team = api, team
        self.path = f"/api/v1/namespaces/{team}/secrets/{SECRET}"
        with needed(f"Secret {SECRET} of team {team} can't be read"):
            self.obj = api.get(self.path)
        self.notes: dict[str, str] = self.obj.get("metadata", {}).get("annotations") or {}

    def key(self) -> Key | None:
        """The team's key; None without one."""
        data = self.obj.get("data") or {}
        try:
            access, secret = (base64.b64decode(data.get(name) or "").decode() for name in ("access-key", "secret-key"))
        except ValueError:
            return None
        return Key(access, secret) if access and secret else None

    def former(self) -> list[ReplacedKey]:
        """The replaced keys that have not ended."""
        try:
            return [
                ReplacedKey(str(one["key"]), *(datetime.fromisoformat(one[end]) for end in ("since", "until")))
                for one in json.loads(self.notes.get(FORMER) or "[]")
            ]
        except (ValueError, TypeError, KeyError, AttributeError):
            say(f"Secret {SECRET} of team {self.team}: its note {FORMER} can't be read; keys that it named end now")
            return []

    def trust(self, ca: str) -> None:
        """Store the authority of the store's certificate in the Secret, PEM. Raises PlatformError."""
        encoded = base64.b64encode(ca.encode()).decode()
        if ca and (self.obj.get("data") or {}).get("ca.crt") != encoded:
            self._merge({"data": {"ca.crt": encoded}})

    def write(self, former: Iterable[ReplacedKey], key: Key | None = None, since: datetime | None = None) -> None:
        """Note the former keys, and store a new key and its time. Raises PlatformError."""
        noted = [
            {"key": one.access, "since": one.since.isoformat(timespec="seconds"),
             "until": one.until.isoformat(timespec="seconds")}
            for one in former
        ]  # fmt: skip
        notes: dict[str, str | None] = {FORMER: json.dumps(noted) if noted else None}
        body: dict[str, Any] = {"metadata": {"annotations": notes}}
        if key:
            notes[ROTATE] = None
            notes[key_ages.SINCE] = since.isoformat(timespec="seconds") if since else None
            pair = {"access-key": key.access, "secret-key": key.secret}
            body["data"] = {name: base64.b64encode(text.encode()).decode() for name, text in pair.items()}
        self._merge(body)

    def _merge(self, body: dict[str, Any]) -> None:
        """Change the Secret, unless somebody else has since it was read."""
        if version := self.obj.get("metadata", {}).get("resourceVersion"):
            body.setdefault("metadata", {})["resourceVersion"] = version
        with needed(f"Secret {SECRET} of team {self.team} can't be written"):
            self.obj = self.api.merge(self.path, body, manager=MANAGER) or self.obj


def ensure(
    api: Api, accounts: Accounts, team: str, policy: dict[str, Any], held: Mapping[str, frozenset[str]], *,
    keep: timedelta, ca: str = "", now: Callable[[], datetime] = lambda: datetime.now(UTC),
) -> None:  # fmt: skip
    """Give a team its key: its Secret's, or a new one if that is missing, due for replacement or can be guessed.

    Args:
        held: the store's owners and keys before this call.
        keep: how long a former key stays valid at most.
        ca: the authority of the store's certificate, PEM; "": the system's.

    Raises PlatformError.
    """
    owner, secret = f"{TEAM}{team}", Secret(api, team)
    secret.trust(ca)
    key, former = secret.key(), {one.access: one for one in secret.former()}
    present = held.get(owner, frozenset())
    # Releases up to 0.2.0 named keys after their team.
    if key is None or key.access == owner or secret.notes.get(ROTATE) == "true":
        new = fresh()
        accounts.give(owner, new, policy)
        if key and key.access in present:
            former[key.access] = ReplacedKey(key.access, now(), now() + keep)
            end = f"{former[key.access].until:%Y-%m-%d %H:%M} UTC"
            say(f"team {team} has a new key; the former one stays valid while pods use it, until {end} at most")
        secret.write([one for one in former.values() if one.access in present], new, now())
        key = new
    else:
        accounts.give(owner, key, policy)
    for access in sorted(present - {key.access} - set(former)):
        accounts.take(owner, access)
        say(f"access key {access} ended: no Secret of team {team} has it any more")
    say(f"team {team} reaches its own prefix and what is shared")


def _names(obj: Any) -> bool:
    """Whether any part of a pod's spec names the Secret."""
    if isinstance(obj, dict):
        return any(_names(value) for value in obj.values())
    if isinstance(obj, list):
        return any(_names(value) for value in obj)
    return bool(obj == SECRET)


def holders(pods: Iterable[dict[str, Any]], since: datetime) -> list[str]:
    """Names of unfinished pods that name the Secret and may have started before it changed."""
    found = []
    for pod in pods:
        made = pod["metadata"].get("creationTimestamp")
        early = not made or datetime.fromisoformat(made) < since + SLACK
        if early and pod.get("status", {}).get("phase") not in ENDED and _names(pod.get("spec")):
            found.append(str(pod["metadata"].get("name", "?")))
    return found


def sweep(api: Api, open_store: Callable[[], Accounts], teams: Iterable[str], now: datetime) -> int:
    """End former keys that no pod uses any more or whose time is over; returns how many. Raises PlatformError."""
    accounts, ended = None, 0
    for team in teams:
        secret = Secret(api, team)
        former = secret.former()
        if not former:
            continue
        with needed(f"pods of team {team} can't be listed"):
            pods = api.get(f"/api/v1/namespaces/{team}/pods").get("items", [])
        due = [one for one in former if one.until <= now or not holders(pods, one.since)]
        if now < max(one.since for one in former) + SLACK:
            due = [one for one in due if one.until <= now]  # pods that are just starting may use it
        for one in due:
            accounts = accounts or open_store()
            accounts.take(f"{TEAM}{team}", one.access)
            say(f"the former key of team {team} ended: {'its time is up' if one.until <= now else 'no pod uses it'}")
        if due:
            secret.write([one for one in former if one not in due])
            ended += len(due)
    return ended


def close_transition(api: Api, name: str, namespaces: Iterable[str], now: datetime) -> bool:
    """Make the store TLS-only once no pod is left that started without TLS; returns whether it is.

    The ConfigMap `name` has `since` and `until`, in seconds since 1970. Raises PlatformError.
    """
    path = f"/api/v1/namespaces/{api.namespace}/configmaps/{name}"
    try:
        data = api.get(path).get("data") or {}
        since, until = (datetime.fromtimestamp(int(data.get(key) or 0), UTC) for key in ("since", "until"))
        if until <= now:
            return True
        left = [
            f"{namespace}/{pod}"
            for namespace in namespaces
            for pod in holders(api.get(f"/api/v1/namespaces/{namespace}/pods").get("items", []), since)
        ]
        if left or now < since + LEAST:
            say(f"the store also answers without TLS, for {', '.join(left[:5]) or 'whatever else started before'}")
            return False
        api.merge(path, {"data": {"until": "0"}}, manager=MANAGER)
    except (ApiError, ValueError, OverflowError) as error:
        raise PlatformError(f"ConfigMap {name} can't be used: {error}") from error
    say("the store answers over TLS alone: no pod is left that started without")
    return True


def run(contract_file: str, transition: str) -> int:
    """One look at all teams. An error with one team doesn't stop the others. Raises PlatformError.

    Args:
        transition: the ConfigMap of a store that switches to TLS; "": none.
    """
    contract = json.loads(Path(contract_file).read_text())
    teams, api, now = [team["name"] for team in contract.get("teams") or []], Api(), datetime.now(UTC)
    failed, ages = [], dict[str, str]()
    opened = functools.cache(lambda: open_store(contract))  # opened only if a key is to end, once for all teams
    for team in teams:
        try:
            sweep(api, opened, [team], now)
            if at := key_ages.since(Secret(api, team).obj):
                ages[team] = at
        except PlatformError as error:
            failed.append(str(error))
        except Exception as error:
            failed.append(f"the object store refused to end a key of team {team}: {type(error).__name__}: {error}")
    if transition:
        close_transition(api, transition, [api.namespace, *teams], now)
    try:
        key_ages.publish(api, ages, teams)
    except PlatformError as error:
        failed.append(str(error))
    if failed:
        raise PlatformError("; ".join(failed))
    return 0
