"""What an issuer hands out, and how it is read: the API server judges a token's signature, this side only its dates."""

import base64
import binascii
import json
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from trainyard.errors import TrainyardError

AHEAD_S = 60.0  # a token is renewed this long before it ends


@dataclass(frozen=True)
class Tokens:
    """An ID token, and the token that renews it ("" where the issuer gives none)."""

    id_token: str
    refresh_token: str = ""

    @property
    def claims(self) -> dict[str, Any]:
        """What the ID token says, unproved."""
        return claims(self.id_token)

    @property
    def expires(self) -> float:
        """When the ID token ends, in Unix seconds."""
        return float(self.claims["exp"])

    def is_fresh(self, now: float) -> bool:
        """Whether the ID token can still be used for a minute."""
        return self.expires - now > AHEAD_S


def claims(token: str) -> dict[str, Any]:
    """The claims of a signed token, without a look at the signature.

    Raises:
        TrainyardError: it is no such token, or says not when it ends.
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
    """The tokens of a token endpoint's answer, which must be for us.

    Args:
        nonce: what the log-in began with; "" for ways that have none.
        kept: the token that this answer was asked with, and that stays where the answer has no new one.

    Raises:
        TrainyardError: there is no ID token, or it is of another issuer, for another client or of another log-in.
    """
    if not isinstance(answer.get("id_token"), str):
        raise TrainyardError("the issuer gave no ID token", where=issuer, hint="the scope `openid` brings one")
    found = Tokens(answer["id_token"], str(answer.get("refresh_token") or kept))
    said = found.claims
    audience = said.get("aud")
    for what, right in (
        (f"of the issuer {said.get('iss')}", str(said.get("iss", "")).rstrip("/") == issuer.rstrip("/")),
        (f"for the audience {audience}", client in (audience if isinstance(audience, list) else [audience])),
        ("of another log-in", not nonce or said.get("nonce") == nonce),
    ):
        if not right:
            raise TrainyardError(f"the token is {what}, so it is refused", where=issuer, hint="check --client-id")
    return found


def person(said: dict[str, Any]) -> str:
    """Who a token's claims are of, for people to read."""
    return str(said.get("email") or said.get("preferred_username") or said.get("name") or said.get("sub") or "somebody")


def credential(tokens: Tokens, api_version: str) -> str:
    """An ExecCredential as kubectl reads it on standard output."""
    end = datetime.fromtimestamp(tokens.expires - AHEAD_S, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    status = {"token": tokens.id_token, "expirationTimestamp": end}
    return json.dumps({"apiVersion": api_version, "kind": "ExecCredential", "status": status})
