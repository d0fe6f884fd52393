"""Requests to an issuer, over TLS only: JSON comes back, and every failure as one sentence."""

import http.client
import json
import ssl
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from trainyard.errors import TrainyardError

TIMEOUT_S = 20.0
MOST = 1 << 20  # bytes of an answer; a document of an issuer has a few KiB


class RefusedError(Exception):
    """What an endpoint refused, in OAuth's words: `error` is the code, such as `invalid_grant`."""

    def __init__(self, error: str, said: str = "") -> None:
        self.error = error
        super().__init__(f"{error}: {said}" if said else error)


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """A token or a code goes to the address that was asked, and to no other."""

    def redirect_request(self, *_: Any) -> None:
        return None


@dataclass(frozen=True)
class IssuerClient:
    """Asks the endpoints of one issuer.

    Args:
        ca: file with the authority of the issuer's certificate, PEM; "" means the machine's authorities.
    """

    ca: str = ""

    def get(self, url: str, headers: Mapping[str, str] | None = None) -> dict[str, Any]:
        """The JSON object at `url`. Raises TrainyardError, or RefusedError when the endpoint refuses."""
        return self._ask(urllib.request.Request(checked(url), headers=dict(headers or {})))

    def post(self, url: str, form: Mapping[str, str]) -> dict[str, Any]:
        """The JSON object that a form brings. Raises as `get` does."""
        return self._ask(urllib.request.Request(checked(url), data=urllib.parse.urlencode(form).encode()))

    def _ask(self, request: urllib.request.Request) -> dict[str, Any]:
        request.add_header("Accept", "application/json")
        where = request.full_url.partition("?")[0]
        opener = urllib.request.build_opener(urllib.request.HTTPSHandler(context=self._tls()), _NoRedirect())
        try:
            with opener.open(request, timeout=TIMEOUT_S) as answer:
                return _object(answer.read(MOST), where)
        except urllib.error.HTTPError as error:
            raise _refusal(error) from None
        except urllib.error.URLError as error:
            raise _unreachable(where, error.reason) from None
        except (OSError, http.client.HTTPException) as error:
            raise _unreachable(where, error) from None

    def _tls(self) -> ssl.SSLContext:
        try:
            context = ssl.create_default_context(cafile=self.ca or None)
        except (OSError, ssl.SSLError) as error:
            raise TrainyardError(
                f"the authority can't be read: {getattr(error, 'strerror', '') or error}",
                where=self.ca,
                hint="name a PEM file with --issuer-ca",
            ) from None
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        return context


def checked(url: str) -> str:
    """The address as it is. Raises TrainyardError when it is not https: tokens would be read on the way."""
    parts = urllib.parse.urlsplit(url)
    if parts.scheme != "https" or not parts.hostname:
        raise TrainyardError("the address is not https", where=url, hint="an issuer is asked over TLS only")
    return url


def _object(raw: bytes, where: str) -> dict[str, Any]:
    try:
        found = json.loads(raw)
    except ValueError:
        found = None
    if not isinstance(found, dict):
        raise TrainyardError("the answer is not a JSON object", where=where, hint="check the issuer's address")
    return found


def _refusal(error: urllib.error.HTTPError) -> Exception:
    """Of an OAuth error its code and words; anything else is an address that does not answer as an issuer does."""
    where = error.url.partition("?")[0]
    try:
        found = json.loads(error.read(MOST))
    except (ValueError, OSError):
        found = {}
    if isinstance(found, dict) and isinstance(found.get("error"), str):
        return RefusedError(found["error"], str(found.get("error_description") or ""))
    return TrainyardError(f"it answered {error.code} {error.reason}", where=where, hint="check the issuer's address")


def _unreachable(where: str, reason: object) -> TrainyardError:
    if isinstance(reason, ssl.SSLCertVerificationError):
        hint = "name the authority of its certificate with --issuer-ca"
        return TrainyardError(f"its certificate can't be trusted: {reason.verify_message}", where=where, hint=hint)
    text = getattr(reason, "strerror", "") or reason
    return TrainyardError(f"it can't be reached: {text}", where=where, hint="check the network and the address")
