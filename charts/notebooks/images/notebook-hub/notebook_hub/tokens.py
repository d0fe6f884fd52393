"""A person's tokens: until when they hold, and the one that makes others, which nobody but the hub may read."""

from __future__ import annotations

import base64
import hashlib
import json
from typing import Any

from cryptography.fernet import Fernet, InvalidToken


def claims(token: str) -> dict[str, Any]:
    """What a token says, unproved: it came from the issuer by a connection that was. {} for what is no token."""
    try:
        part = token.split(".")[1]
        found = json.loads(base64.urlsafe_b64decode(part + "=" * (-len(part) % 4)))
    except (IndexError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def expires(token: str) -> float:
    """When a token ends, in seconds since 1970; 0 for one that doesn't say."""
    found = claims(token).get("exp", 0)
    return float(found) if isinstance(found, int | float) and not isinstance(found, bool) else 0.0


class Seal:
    """Closes texts so that only this hub opens them: its notebooks are shown what lies in a person's state."""

    def __init__(self, key: str) -> None:
        """`key`: any text that the hub alone knows."""
        if not key:
            raise ValueError("the hub has no key to close tokens with: set JUPYTERHUB_CRYPT_KEY")
        digest = hashlib.sha256(b"trainyard refresh token\0" + key.encode()).digest()
        self._fernet = Fernet(base64.urlsafe_b64encode(digest))

    def close(self, text: str) -> str:
        """The text as nobody reads it; "" stays so."""
        return self._fernet.encrypt(text.encode()).decode() if text else ""

    def open(self, closed: str) -> str:
        """What was closed; "" for what this key did not close."""
        try:
            return self._fernet.decrypt(closed.encode()).decode() if closed else ""
        except InvalidToken:
            return ""
