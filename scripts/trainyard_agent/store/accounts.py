"""Users of an object store that the platform administers: the setup job's interface to any such store.

An owner is `trainyard` (the platform), `trainyard-logs` (the log writer), `trainyard-kfp` (the service behind
kfp.Client) or `trainyard-team-<team>`. It has one policy and any number of keys, so that a new key and its
predecessor can both give access. An owner's data stay when its keys are removed.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from trainyard_agent.store import connect
from trainyard_agent.store.accounts_keys import Key
from trainyard_agent.store.connect import Access


class Accounts(Protocol):
    """The four operations. Each may take a second: call rarely. Errors of the store's client are raised unchanged."""

    def held(self) -> Mapping[str, frozenset[str]]:
        """The platform's owners, each with its access keys."""
        ...

    def give(self, owner: str, key: Key, policy: dict[str, Any]) -> None:
        """Ensure that this key belongs to this owner, with exactly these permissions.

        Raises PlatformError when the key is another owner's.
        """
        ...

    def take(self, owner: str, access: str) -> None:
        """Remove one key of an owner, with all keys derived from it. A missing key is no error."""
        ...

    def drop(self, owner: str) -> None:
        """Remove an owner with all its keys and its policy. A missing owner is no error."""
        ...


def administered(contract: Mapping[str, Any]) -> bool:
    """Whether the setup job makes the store's users. Otherwise an engineer does, from the policies it publishes."""
    s3 = contract["storage"]["s3"]
    return s3["mode"] == "inCluster" or (s3.get("users") or "manual") != "manual"


def administrator(contract: Mapping[str, Any]) -> Access:
    """Access for making buckets, and users where the platform does, by the environment. Raises PlatformError."""
    if contract["storage"]["s3"]["mode"] == "inCluster":
        return connect.access(root=True)
    return connect.access("ADMIN") if administered(contract) else connect.access()


def open_store(contract: Mapping[str, Any]) -> Accounts:
    """The users of a store that the platform administers. Raises PlatformError."""
    if contract["storage"]["s3"]["mode"] == "inCluster":
        from trainyard_agent.store.accounts_minio import MinioAccounts

        return MinioAccounts(administrator(contract))
    from trainyard_agent.store.accounts_rgw import RgwAccounts

    return RgwAccounts(administrator(contract))
