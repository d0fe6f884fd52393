"""Users of MinIO. A user there is an access key: an owner is the policy that all its users share."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from trainyard_agent.say import PlatformError
from trainyard_agent.store import connect
from trainyard_agent.store.accounts_keys import Key, is_owner
from trainyard_agent.store.connect import Access

# By default, every MinIO user may create service accounts and temporary keys for himself, change his secret key and see
# the sizes of buckets that he can access; so policies must deny it.
NO_ADMINISTRATION = {"Effect": "Deny", "Action": ["admin:*"]}


class MinioAccounts:
    """Implementation of `Accounts` for MinIO. An admin call takes a second: both ends stretch the password."""

    def __init__(self, root: Access) -> None:
        self.root, self.admin = root, connect.admin(root)
        self._users: dict[str, str] = {
            user: str(about.get("policyName", "")) for user, about in json.loads(self.admin.user_list()).items()
        }

    def held(self) -> Mapping[str, frozenset[str]]:
        """The platform's owners, each with its access keys. An owner may have none."""
        found: dict[str, set[str]] = defaultdict(set)
        for user, owner in self._users.items():
            if is_owner(owner):
                found[owner].add(user)
        for owner in json.loads(self.admin.policy_list()):
            if is_owner(owner):
                found[owner]
        return {owner: frozenset(users) for owner, users in found.items()}

    def give(self, owner: str, key: Key, policy: dict[str, Any]) -> None:
        """Create or correct one user and its policy."""
        if key.access == self.root.user:
            raise PlatformError(f"the access key of {owner} is the root user's: delete its Secret and upgrade again")
        # A changed Secret could take over another owner's key.
        if (other := self._users.get(key.access)) and other != owner:
            raise PlatformError(f"access key {key.access} of {owner} is {other}'s: delete its Secret and upgrade again")
        self.admin.policy_add(owner, policy=policy | {"Statement": [*policy["Statement"], NO_ADMINISTRATION]})
        if key.access not in self._users or not self._knows(key):
            self.admin.user_add(key.access, key.secret)
        if self._users.get(key.access) != owner:
            self.admin.policy_set(owner, user=key.access)
        self._users[key.access] = owner

    def _knows(self, key: Key) -> bool:
        """Whether this is the user's current secret."""
        from minio.error import S3Error

        try:
            connect.client(replace(self.root, user=key.access, password=key.secret)).list_buckets()
        except S3Error as error:
            return error.code == "AccessDenied"
        return True

    def take(self, owner: str, access: str) -> None:
        """Remove one user; MinIO removes its service accounts and temporary keys with it."""
        if self._users.get(access) == owner:
            self.admin.user_remove(access)
            del self._users[access]

    def drop(self, owner: str) -> None:
        """Remove all users of a policy, then the policy."""
        for user in [user for user, held in self._users.items() if held == owner]:
            self.take(owner, user)
        if owner in json.loads(self.admin.policy_list()):
            self.admin.policy_remove(owner)
