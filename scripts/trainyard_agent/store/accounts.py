"""Users of an object store that is ours to administer: what the setup job asks of it, whichever store it is.

An owner is `trainyard` (the platform), `trainyard-logs` (who writes logs) or `trainyard-team-<team>`. It has one policy
and any number of keys, so that a new key and a former one can open the store at the same time. What an owner stored
stays when its keys go.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from trainyard_agent.store import connect
from trainyard_agent.store.accounts_keys import Key
from trainyard_agent.store.connect import Access


class Accounts(Protocol):
    """The four calls. Each may cost a second: ask rarely. What a store refuses is raised as the client raises it."""

    def held(self) -> Mapping[str, frozenset[str]]:
        """The owners that are ours, each with its access keys."""
        ...

    def give(self, owner: str, key: Key, policy: dict[str, Any]) -> None:
        """See to it that this key opens the store as this owner, and that the owner may do this and no more.

        Raises PlatformError when the key is another owner's.
        """
        ...

    def take(self, owner: str, access: str) -> None:
        """End one key of an owner, with all keys that were derived from it. One that is not there is no error."""
        ...

    def drop(self, owner: str) -> None:
        """End an owner with all its keys and its policy. One that is not there is no error."""
        ...


def administered(contract: Mapping[str, Any]) -> bool:
    """Does the setup job make the store's users? Else an engineer does, by the policies that it publishes."""
    s3 = contract["storage"]["s3"]
    return s3["mode"] == "inCluster" or (s3.get("users") or "manual") != "manual"


def administrator(contract: Mapping[str, Any]) -> Access:
    """What makes the buckets, and the users where they are ours, by the environment. Raises PlatformError."""
    if contract["storage"]["s3"]["mode"] == "inCluster":
        return connect.access(root=True)
    return connect.access("ADMIN") if administered(contract) else connect.access()


def open_store(contract: Mapping[str, Any]) -> Accounts:
    """The users of a store that is ours to administer. Raises PlatformError."""
    if contract["storage"]["s3"]["mode"] == "inCluster":
        from trainyard_agent.store.accounts_minio import MinioAccounts

        return MinioAccounts(administrator(contract))
    from trainyard_agent.store.accounts_rgw import RgwAccounts

    return RgwAccounts(administrator(contract))
