"""Tokens that an issuer never issued: signed with its own key, which no attacker has, or with another."""

import base64
import json
import time
from typing import Any

from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import padding, rsa


class Forger:
    """Signs any claims, by default those that Dex would sign for ada.

    Args:
        issuer: the issuer's name in the tokens.
        keys: Dex's signing keys from the API server, a list of `signingkeies.dex.coreos.com`.
        own: sign with a new key instead, under the name of Dex's key.
    """

    def __init__(self, issuer: str, keys: dict[str, Any], *, own: bool = False) -> None:
        self.issuer = issuer
        held = keys["items"][0]["signingKey"]
        names = ("n", "e", "d", "p", "q", "dp", "dq", "qi")
        raw = (base64.urlsafe_b64decode(held[name] + "==") for name in names)
        n, e, d, p, q, dp, dq, qi = (int.from_bytes(one, "big") for one in raw)
        numbers = rsa.RSAPrivateNumbers(p, q, d, dp, dq, qi, rsa.RSAPublicNumbers(e, n))
        self._key = rsa.generate_private_key(65537, 2048) if own else numbers.private_key()
        self._id = held["kid"]

    def token(self, **changed: Any) -> str:
        """Ada's token as Dex would sign it now, with these claims changed; None omits a claim."""
        signed = self._unsigned({"alg": "RS256", "kid": self._id}, changed)
        return f"{signed}.{_text(self._key.sign(signed.encode(), padding.PKCS1v15(), hashes.SHA256()))}"

    def unsigned(self, **changed: Any) -> str:
        """Ada's token without a signature, and a header that claims it needs none."""
        return f"{self._unsigned({'alg': 'none', 'kid': self._id}, changed)}."

    def _unsigned(self, head: dict[str, str], changed: dict[str, Any]) -> str:
        now = int(time.time())
        said = {
            "iss": self.issuer, "sub": "forged", "aud": "trainyard", "iat": now, "exp": now + 600,
            "email": "ada@example.org", "email_verified": True, "groups": ["vision-members"],
        } | changed  # fmt: skip
        claims = {name: value for name, value in said.items() if value is not None}
        return ".".join(_text(json.dumps(part).encode()) for part in (head, claims))


def _text(raw: bytes) -> str:
    return base64.urlsafe_b64encode(raw).rstrip(b"=").decode()
