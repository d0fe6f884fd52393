"""A local HTTP server that forwards requests to a service of the platform with the caller's own token.

For clients that can't renew a token, such as `kfp.Client`. Programs of other users of this machine reach it, too, as
they reach `kubectl proxy`; pages in a browser don't.
"""

from __future__ import annotations

import http.server
import json
import threading
from urllib.parse import urlsplit

import urllib3

from trainyard.errors import TrainyardError, UsageError
from trainyard.kube.access import proxy_of
from trainyard.kube.client import CONNECT_S, Kube, KubeError
from trainyard.kube.tries import cause, retries

HOSTS = ("localhost", "127.0.0.1")
FORWARDED = "/apis/"  # anything else is the page's, which has a log-in of its own
# Headers of one connection, and those that say who asks.
OWN = {"host", "server", "date", "connection", "keep-alive", "proxy-authenticate", "proxy-authorization", "te",
       "upgrade", "trailer", "transfer-encoding", "authorization", "cookie", "set-cookie", "origin",
       "referer"}  # fmt: skip
READ_S = 300.0


def token(kube: Kube) -> str:
    """The caller's bearer token, renewed if it expires soon. Raises TrainyardError if the kubeconfig has none."""
    if kube.user:
        raise UsageError("--as sends no token of that user, which the service needs", hint="remove --as")
    value = str(kube.configuration.auth_settings().get("BearerToken", {}).get("value") or "")
    if not value.startswith("Bearer "):
        what = "the kubeconfig has no token, and the service accepts no client certificate"
        raise TrainyardError(what, hint="log in with `trainyard login`, or use a kubeconfig with a token")
    return value.removeprefix("Bearer ")


class Relay(http.server.ThreadingHTTPServer):
    """Server on 127.0.0.1 that forwards to `target`; `port` 0 chooses a free port. Raises KubeError if it is in use.

    Args:
        ca: file with the CA of the target's certificate; "" means the machine's authorities.
    """

    def __init__(self, kube: Kube, target: str, port: int = 0, ca: str = "") -> None:
        if urlsplit(target).scheme not in ("http", "https"):
            raise UsageError(f"{target!r} is not a URL", hint="for example: https://runs.example.org")
        self.target, self._kube, self._lock = target.rstrip("/"), kube, threading.Lock()
        via = proxy_of(target)
        self.pool = (urllib3.ProxyManager(via, ca_certs=ca or None) if via
                     else urllib3.PoolManager(maxsize=8, ca_certs=ca or None))  # fmt: skip
        try:
            super().__init__((HOSTS[1], port), _Forwarded)
        except OSError as error:
            hint = "choose another port with --port"
            raise KubeError(f"port {port} on this machine can't be used: {error.strerror}", hint=hint) from None
        self.port = int(self.server_address[1])

    def token(self) -> str:
        """The caller's token now; one thread at a time renews it."""
        with self._lock:
            return token(self._kube)


class _Forwarded(http.server.BaseHTTPRequestHandler):
    server: Relay
    protocol_version = "HTTP/1.1"
    timeout = 60  # seconds between two requests of a connection

    def do_GET(self) -> None:
        """Answers any method the same way."""
        length = self.headers.get("content-length", "0")
        if self._is_foreign():
            self._refuse(403, 7, "only programs on this machine may use this port, as localhost; no page in a browser")
        elif not self.path.startswith(FORWARDED):
            self._short(307, b"", {"Location": f"{self.server.target}/"})  # browsers keep what follows the #
        elif "transfer-encoding" in self.headers or not length.isdigit():
            self._refuse(411, 3, "the request has no Content-Length")
        else:
            self._forward(self.rfile.read(int(length)))

    do_POST = do_PUT = do_PATCH = do_DELETE = do_GET  # noqa: N815  the names that http.server looks for

    def _is_foreign(self) -> bool:
        """Whether a browser sends this for a page: any host may lead here, and other ports have pages, too."""
        own = {f"{host}{port}" for host in HOSTS for port in ("", f":{self.server.port}")}
        origin, site = self.headers.get("origin"), self.headers.get("sec-fetch-site", "none")
        named = {*self.headers.get_all("host", [""]), *([origin.removeprefix("http://")] if origin else [])}
        return not named <= own or site not in ("none", "same-origin")

    def _forward(self, body: bytes) -> None:
        try:
            sent = {name: value for name, value in self.headers.items() if name.lower() not in OWN}
            sent["Authorization"] = f"Bearer {self.server.token()}"
            answer = self.server.pool.request(
                self.command, self.server.target + self.path, body=body, headers=sent, redirect=False,
                timeout=urllib3.Timeout(connect=CONNECT_S, read=READ_S), retries=retries(False),
                preload_content=False, decode_content=False,
            )  # fmt: skip
        except urllib3.exceptions.HTTPError as error:
            why = cause(getattr(error, "reason", None) or error)
            self._refuse(502, 14, f"{self.server.target} does not answer: {why}")
            return
        except TrainyardError as error:
            self._refuse(401, 16, str(error))
            return
        self.send_response(answer.status)
        for name, value in answer.headers.items():
            if name.lower() not in OWN:
                self.send_header(name, value)
        if "content-length" not in answer.headers and answer.status not in (204, 304):
            self.send_header("Connection", "close")  # the end of the connection is the answer's
        self.end_headers()
        try:
            while piece := answer.read1(65536):
                self.wfile.write(piece)
        except (urllib3.exceptions.HTTPError, OSError):
            self.close_connection = True
        finally:
            answer.close()  # one that was read to its end has given its connection back

    def _refuse(self, status: int, code: int, message: str) -> None:
        """Answers in the form of KFP's errors, and reads no more from this connection."""
        body = {"error": message, "code": code, "message": message, "details": []}
        self._short(status, json.dumps(body).encode(), {"Content-Type": "application/json", "Connection": "close"})

    def _short(self, status: int, body: bytes, headers: dict[str, str]) -> None:
        self.send_response(status)
        for name, value in {**headers, "Content-Length": str(len(body))}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Prints nothing: a request's query may have names."""
