"""A person's tokens: their expiry, and the encryption of the refresh token, which only the hub may read."""

from __future__ import annotations

import base64
import hashlib
import json
from typing import Any

from cryptography.fernet import Fernet, InvalidToken


def claims(token: str) -> dict[str, Any]:
    """A token's claims, unverified, as it came from the issuer over a verified connection. {} for what is no token."""
    try:
        part = token.split(".")[1]
        found = json.loads(base64.urlsafe_b64decode(part + "=" * (-len(part) % 4)))
    except (IndexError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def expires(token: str) -> float:
    """A token's expiry in seconds since 1970; 0 for one without it."""
    found = claims(token).get("exp", 0)
    return float(found) if isinstance(found, int | float) and not isinstance(found, bool) else 0.0


class Seal:
    """Encrypts texts so that only this hub can decrypt them, since notebooks may read a person's state."""

    def __init__(self, key: str) -> None:
        """`key`: any text that only the hub has."""
        if not key:
            raise ValueError("the hub has no key to close tokens with: set JUPYTERHUB_CRYPT_KEY")
        digest = hashlib.sha256(b"trainyard refresh token\0" + key.encode()).digest()
        self._fernet = Fernet(base64.urlsafe_b64encode(digest))

    def close(self, text: str) -> str:
        """Encrypts a text; "" stays ""."""
        return self._fernet.encrypt(text.encode()).decode() if text else ""

    def open(self, closed: str) -> str:
        """Decrypts a text; "" for one that this key did not encrypt."""
        try:
            return self._fernet.decrypt(closed.encode()).decode() if closed else ""
        except InvalidToken:
            return ""
