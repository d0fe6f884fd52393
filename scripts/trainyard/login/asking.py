"""JSON requests to an issuer, only over TLS; every failure is one sentence."""

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
MOST = 1 << 20  # bytes of a response; an issuer's document has a few KiB


class RefusedError(Exception):
    """An endpoint refused the request; `error` is OAuth's code, such as `invalid_grant`."""

    def __init__(self, error: str, said: str = "") -> None:
        self.error = error
        super().__init__(f"{error}: {said}" if said else error)


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """Rejects redirects: a token or a code must only reach the requested address."""

    def redirect_request(self, *_: Any) -> None:
        return None


@dataclass(frozen=True)
class IssuerClient:
    """Client of one issuer's endpoints.

    Args:
        ca: PEM file with the issuer's certificate authority; "" means the machine's authorities.
    """

    ca: str = ""

    def get(self, url: str, headers: Mapping[str, str] | None = None) -> dict[str, Any]:
        """Gets the JSON object at `url`. Raises TrainyardError, or RefusedError if the endpoint refuses."""
        return self._ask(urllib.request.Request(checked(url), headers=dict(headers or {})))

    def post(self, url: str, form: Mapping[str, str]) -> dict[str, Any]:
        """Posts a form and returns the JSON object of the response. Raises as `get` does."""
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
                f"the CA certificate can't be read: {getattr(error, 'strerror', '') or error}",
                where=self.ca,
                hint="pass a PEM file with --issuer-ca",
            ) from None
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        return context


def checked(url: str) -> str:
    """The unchanged address. Raises TrainyardError if it is not https: tokens could be read in transit."""
    parts = urllib.parse.urlsplit(url)
    if parts.scheme != "https" or not parts.hostname:
        raise TrainyardError("the address is not https", where=url, hint="use https: the issuer must use TLS")
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
    """The code and description of an OAuth error; for any other response, an error about the address."""
    where = error.url.partition("?")[0]
    try:
        found = json.loads(error.read(MOST))
    except (ValueError, OSError):
        found = {}
    if isinstance(found, dict) and isinstance(found.get("error"), str):
        return RefusedError(found["error"], str(found.get("error_description") or ""))
    return TrainyardError(f"answered {error.code} {error.reason}", where=where, hint="check the issuer's address")


def _unreachable(where: str, reason: object) -> TrainyardError:
    if isinstance(reason, ssl.SSLCertVerificationError):
        hint = "pass the CA of the certificate with --issuer-ca"
        return TrainyardError(f"untrusted certificate: {reason.verify_message}", where=where, hint=hint)
    text = getattr(reason, "strerror", "") or reason
    return TrainyardError(f"it can't be reached: {text}", where=where, hint="check the network and the address")
