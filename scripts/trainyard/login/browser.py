"""A log-in in the browser of this machine: authorization code with PKCE, which comes back to a port of the loopback."""

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
    """What the issuer is told of a verifier beforehand, by S256."""
    return base64.urlsafe_b64encode(hashlib.sha256(verifier.encode()).digest()).rstrip(b"=").decode()


class _Callback(http.server.HTTPServer):
    """Waits for the one answer that carries our state; whatever else comes to the port changes nothing."""

    def __init__(self, port: int, issuer: str) -> None:
        self.state, self.issuer = secrets.token_urlsafe(32), issuer
        self.answer: dict[str, str] | None = None
        try:
            super().__init__(("127.0.0.1", port), _Handler)
        except OSError as error:
            raise TrainyardError(
                f"port {port} of 127.0.0.1 can't be used: {error.strerror}", hint="give another with --port"
            ) from None
        self.timeout = 0.5

    @property
    def redirect(self) -> str:
        """Where the issuer sends the browser back to."""
        return f"http://127.0.0.1:{self.server_address[1]}{CALLBACK}"


class _Handler(http.server.BaseHTTPRequestHandler):
    server: _Callback
    timeout = 10  # of a connection that says nothing

    def do_GET(self) -> None:
        """The browser's answer, or something else."""
        parts = urllib.parse.urlsplit(self.path)
        said = dict(urllib.parse.parse_qsl(parts.query))
        if parts.path != CALLBACK:
            return self._page(404, "Nothing is here", "This port waits for a log-in.")
        if not secrets.compare_digest(said.get("state", "").encode(), self.server.state.encode()):
            return self._page(400, "Not this log-in", "The answer belongs to another log-in; nothing was done.")
        if said.get("iss", self.server.issuer) != self.server.issuer:
            return self._page(400, "Not this issuer", "The answer comes from another issuer; nothing was done.")
        self.server.answer = said
        if "code" in said:
            return self._page(200, "Logged in", "Close this window and go back to your terminal.")
        return self._page(200, "Not logged in", said.get("error_description") or said.get("error") or "no code came")

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
        """Says nothing: the path has the code in it."""


def log_in(
    asker: IssuerClient,
    issuer: Issuer,
    client: str,
    *,
    port: int = 0,
    show: Callable[[str], bool] = webbrowser.open,
    patience_s: float = PATIENCE_S,
) -> Tokens:
    """Has the person log in at the issuer, and trades the code that comes back for tokens.

    Args:
        port: of 127.0.0.1, where the issuer allows only certain ones; 0: any that is free.
        show: opens an address; the address is printed as well.

    Raises:
        TrainyardError: the issuer or the person refused, or nothing came in time.
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
                raise TrainyardError(f"no log-in came within {patience_s:.0f} s", where=issuer.url, hint=hint)
            server.handle_request()
        answer, redirect = server.answer, server.redirect
    if "code" not in answer:
        said = answer.get("error_description") or answer.get("error") or "no code came"
        raise TrainyardError(f"the log-in was refused: {said}", where=issuer.url, hint="try again")
    form = {
        "grant_type": "authorization_code", "code": answer["code"], "redirect_uri": redirect, "client_id": client,
        "code_verifier": verifier,
    }  # fmt: skip
    try:
        return received(asker.post(issuer.token, form), issuer.url, client, nonce)
    except RefusedError as error:
        raise TrainyardError(f"the log-in was refused: {error}", where=issuer.url, hint="check --client-id") from None
