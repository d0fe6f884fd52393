"""Tokens from an issuer: the API server verifies a token's signature, this side only checks its dates."""

import base64
import binascii
import json
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from trainyard.errors import TrainyardError

AHEAD_S = 60.0  # how long before its expiry a token is renewed


@dataclass(frozen=True)
class Tokens:
    """An ID token, and its refresh token ("" if the issuer provides none)."""

    id_token: str
    refresh_token: str = ""

    @property
    def claims(self) -> dict[str, Any]:
        """Claims of the ID token, unverified."""
        return claims(self.id_token)

    @property
    def expires(self) -> float:
        """Expiry of the ID token, in Unix seconds."""
        return float(self.claims["exp"])

    def is_fresh(self, now: float) -> bool:
        """Whether the ID token is valid for at least another minute."""
        return self.expires - now > AHEAD_S


def claims(token: str) -> dict[str, Any]:
    """The claims of a signed token, without verifying the signature.

    Raises:
        TrainyardError: it is not a signed token, or has no expiry.
    """
    parts = token.split(".")
    try:
        found = json.loads(base64.urlsafe_b64decode(parts[1] + "=" * (-len(parts[1]) % 4)))
    except (IndexError, ValueError, binascii.Error):
        found = None
    if len(parts) != 3 or not isinstance(found, dict) or not isinstance(found.get("exp"), int | float):
        raise TrainyardError("the issuer's token can't be read", hint="log in again with `trainyard login`")
    return found


def received(answer: dict[str, Any], issuer: str, client: str, nonce: str = "", kept: str = "") -> Tokens:
    """The tokens in a token endpoint's response, after checking that they are for us.

    Args:
        nonce: nonce of the log-in; "" for methods without one.
        kept: the refresh token of the request, which remains valid if the response has no new one.

    Raises:
        TrainyardError: there is no ID token, or it is from another issuer, for another client or from another log-in.
    """
    if not isinstance(answer.get("id_token"), str):
        raise TrainyardError("the issuer gave no ID token", where=issuer, hint="request the scope `openid`")
    found = Tokens(answer["id_token"], str(answer.get("refresh_token") or kept))
    said = found.claims
    audience = said.get("aud")
    for what, right in (
        (f"of the issuer {said.get('iss')}", str(said.get("iss", "")).rstrip("/") == issuer.rstrip("/")),
        (f"for the audience {audience}", client in (audience if isinstance(audience, list) else [audience])),
        ("of another log-in", not nonce or said.get("nonce") == nonce),
    ):
        if not right:
            raise TrainyardError(f"refused a token {what}", where=issuer, hint="check --client-id")
    return found


def person(said: dict[str, Any]) -> str:
    """Human-readable name in a token's claims."""
    return str(said.get("email") or said.get("preferred_username") or said.get("name") or said.get("sub") or "somebody")


def credential(tokens: Tokens, api_version: str) -> str:
    """ExecCredential for kubectl, which reads it from standard output."""
    end = datetime.fromtimestamp(tokens.expires - AHEAD_S, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    status = {"token": tokens.id_token, "expirationTimestamp": end}
    return json.dumps({"apiVersion": api_version, "kind": "ExecCredential", "status": status})
