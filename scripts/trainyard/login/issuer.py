"""An OpenID Connect issuer, from its discovery document."""

from collections.abc import Sequence
from dataclasses import dataclass

from trainyard.errors import TrainyardError
from trainyard.login.asking import IssuerClient, RefusedError, checked

DISCOVERY = "/.well-known/openid-configuration"
# Requested scopes, if the issuer supports them; offline_access yields a refresh token.
SCOPES = ("openid", "email", "profile", "groups", "offline_access")


@dataclass(frozen=True)
class Issuer:
    """Endpoints and scopes of an issuer; a missing endpoint is ""."""

    url: str
    authorization: str
    token: str
    device: str = ""
    revocation: str = ""
    scopes: tuple[str, ...] = SCOPES

    @property
    def asked_scopes(self) -> str:
        """Scopes of a log-in, separated by spaces."""
        return " ".join(self.scopes)


def discover(asker: IssuerClient, url: str, scopes: Sequence[str] = ()) -> Issuer:
    """Reads the issuer's discovery document.

    Args:
        scopes: scopes to request; default: ours, as far as the issuer supports them.

    Raises:
        TrainyardError: it can't be reached, is another issuer, or lacks what a log-in needs.
    """
    base = checked(url).rstrip("/")
    try:
        found = asker.get(base + DISCOVERY)
    except RefusedError as error:
        raise TrainyardError(f"no discovery document found ({error})", where=url, hint="check --issuer") from None
    said = str(found.get("issuer", ""))
    if said.rstrip("/") != base:
        raise TrainyardError(
            f"it calls itself {said or 'nothing'}", where=url, hint="give --issuer exactly as the issuer calls itself"
        )
    ends = {key: str(found.get(f"{key}_endpoint") or "") for key in ("authorization", "token")}
    for key, end in ends.items():
        if not end:
            raise TrainyardError(f"it names no {key}_endpoint", where=url, hint="check the issuer's address")
        checked(end)
    methods = found.get("code_challenge_methods_supported")
    if isinstance(methods, list) and "S256" not in methods:
        raise TrainyardError("the issuer does not support PKCE with S256", where=url, hint="enable PKCE at the issuer")
    offered = found.get("scopes_supported")
    known = tuple(s for s in SCOPES if s in offered or s == "openid") if isinstance(offered, list) else SCOPES
    optional = {key: str(found.get(f"{key}_endpoint") or "") for key in ("device_authorization", "revocation")}
    return Issuer(
        url=said,
        **ends,
        device=optional["device_authorization"],
        revocation=optional["revocation"],
        scopes=tuple(scopes) or known,
    )
