"""Keys of an object store's users, and their owners."""

from __future__ import annotations

import secrets
import string
from dataclasses import dataclass

from trainyard_agent.store.s3_policies import KFP, LOGS, PLATFORM, TEAM

# Access keys are no secrets to S3, but nobody should be able to guess one: 20 of 36 characters are 103 bits.
_LETTERS = string.ascii_uppercase + string.digits


@dataclass(frozen=True)
class Key:
    """An access key and its secret."""

    access: str
    secret: str

    def __repr__(self) -> str:
        return f"Key({self.access!r})"


def fresh() -> Key:
    """A new random key, which doesn't reveal its owner."""
    letters = string.ascii_letters + string.digits
    return Key(
        "".join(secrets.choice(_LETTERS) for _ in range(20)), "".join(secrets.choice(letters) for _ in range(40))
    )


def is_owner(owner: str) -> bool:
    """Whether the platform makes and removes this owner."""
    return owner in (PLATFORM, LOGS, KFP) or owner.startswith(TEAM)
