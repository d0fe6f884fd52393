"""Log-in with the browser of this machine: authorization code with PKCE, received on a loopback port."""

import base64
import hashlib
import html
import http.server
import secrets
import sys
import time
import urllib.parse
import webbrowser
from collections.abc import Callable
from typing import Any

from trainyard.errors import TrainyardError
from trainyard.login.asking import IssuerClient, RefusedError
from trainyard.login.issuer import Issuer
from trainyard.login.tokens import Tokens, received

PATIENCE_S = 300.0
CALLBACK = "/callback"
PAGE = """<!doctype html><meta charset="utf-8"><title>trainyard</title>
<body style="font:16px sans-serif;margin:4em"><h1>{title}</h1><p>{text}</p>"""


def challenge(verifier: str) -> str:
    """The S256 challenge of a verifier, sent to the issuer in advance."""
    return base64.urlsafe_b64encode(hashlib.sha256(verifier.encode()).digest()).rstrip(b"=").decode()


class _Callback(http.server.HTTPServer):
    """Server that waits for the one response with our state; any other request changes nothing."""

    def __init__(self, port: int, issuer: str) -> None:
        self.state, self.issuer = secrets.token_urlsafe(32), issuer
        self.answer: dict[str, str] | None = None
        try:
            super().__init__(("127.0.0.1", port), _Handler)
        except OSError as error:
            raise TrainyardError(
                f"port {port} of 127.0.0.1 can't be used: {error.strerror}", hint="choose another port with --port"
            ) from None
        self.timeout = 0.5

    @property
    def redirect(self) -> str:
        """Redirect URI for the issuer."""
        return f"http://127.0.0.1:{self.server_address[1]}{CALLBACK}"


class _Handler(http.server.BaseHTTPRequestHandler):
    server: _Callback
    timeout = 10  # timeout of an idle connection

    def do_GET(self) -> None:
        """Handles the issuer's response, or any other request."""
        parts = urllib.parse.urlsplit(self.path)
        said = dict(urllib.parse.parse_qsl(parts.query))
        if parts.path != CALLBACK:
            return self._page(404, "Page not found", "This port waits for a log-in.")
        if not secrets.compare_digest(said.get("state", "").encode(), self.server.state.encode()):
            return self._page(400, "Not this log-in", "The answer belongs to another log-in; nothing was done.")
        if said.get("iss", self.server.issuer) != self.server.issuer:
            return self._page(400, "Not this issuer", "The answer comes from another issuer; nothing was done.")
        self.server.answer = said
        if "code" in said:
            return self._page(200, "Logged in", "Close this window and go back to your terminal.")
        return self._page(200, "Not logged in", said.get("error_description") or said.get("error") or "no code arrived")

    def _page(self, code: int, title: str, text: str) -> None:
        body = PAGE.format(title=html.escape(title), text=html.escape(text)).encode()
        self.send_response(code)
        self.send_header("Content-Type", "text/html; charset=utf-8")
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'")
        self.send_header("Referrer-Policy", "no-referrer")
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        """Logs nothing: the path contains the code."""


def log_in(
    asker: IssuerClient,
    issuer: Issuer,
    client: str,
    *,
    port: int = 0,
    show: Callable[[str], bool] = webbrowser.open,
    patience_s: float = PATIENCE_S,
) -> Tokens:
    """Lets the user log in at the issuer, and exchanges the resulting code for tokens.

    Args:
        port: port of 127.0.0.1, if the issuer allows only certain ports; 0: any free port.
        show: opens an address in the browser; the address is also printed.

    Raises:
        TrainyardError: the issuer or the user refused, or no response came in time.
    """
    verifier, nonce = secrets.token_urlsafe(64), secrets.token_urlsafe(32)
    with _Callback(port, issuer.url) as server:
        asked = {
            "response_type": "code", "client_id": client, "redirect_uri": server.redirect, "state": server.state,
            "scope": issuer.asked_scopes, "nonce": nonce, "code_challenge": challenge(verifier),
            "code_challenge_method": "S256",
        }  # fmt: skip
        joint = "&" if "?" in issuer.authorization else "?"
        address = f"{issuer.authorization}{joint}{urllib.parse.urlencode(asked)}"
        print(f"log in here, if no window opens:\n  {address}", file=sys.stderr, flush=True)
        show(address)
        end = time.monotonic() + patience_s
        while server.answer is None:
            if time.monotonic() > end:
                hint = "try again, or with --device on a machine without a browser"
                raise TrainyardError(f"no log-in within {patience_s:.0f} s", where=issuer.url, hint=hint)
            server.handle_request()
        answer, redirect = server.answer, server.redirect
    if "code" not in answer:
        said = answer.get("error_description") or answer.get("error") or "no code arrived"
        raise TrainyardError(f"the log-in was refused: {said}", where=issuer.url, hint="try again")
    form = {
        "grant_type": "authorization_code", "code": answer["code"], "redirect_uri": redirect, "client_id": client,
        "code_verifier": verifier,
    }  # fmt: skip
    try:
        return received(asker.post(issuer.token, form), issuer.url, client, nonce)
    except RefusedError as error:
        raise TrainyardError(f"the log-in was refused: {error}", where=issuer.url, hint="check --client-id") from None
