"""A small client for the Kubernetes API, from inside a pod: a few megabytes where the full client takes seventy."""

from __future__ import annotations

import http.client
import json
import os
import ssl
import urllib.parse
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from trainyard_agent.say import PlatformError

ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")
MERGE = "application/merge-patch+json"
APPLY = "application/apply-patch+yaml"
# Exceptions that reading an object written by members can raise.
MALFORMED = (ValueError, TypeError, AttributeError, KeyError, OverflowError)


class ApiError(Exception):
    """An answer with status 400 or above; `status` is 0 when the server could not be reached."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status
        self.message = message


@contextmanager
def needed(trouble: str) -> Iterator[None]:
    """Calls that the command can't do without. Raises PlatformError: `trouble`, and the API's message."""
    try:
        yield
    except ApiError as error:
        raise PlatformError(f"{trouble}: {error.message}") from error


class Api:
    """Client that uses the pod's own token. It opens one connection per call, since all callers are infrequent."""

    def __init__(self, account: Path = ACCOUNT) -> None:
        self._account = account
        self._host = os.environ.get("KUBERNETES_SERVICE_HOST", "kubernetes.default.svc")
        self._port = int(os.environ.get("KUBERNETES_SERVICE_PORT", "443"))
        self._tls = ssl.create_default_context(cafile=str(account / "ca.crt"))

    @property
    def namespace(self) -> str:
        """The pod's namespace."""
        return (self._account / "namespace").read_text().strip()

    def call(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        content: str = "application/json",
        query: dict[str, str] | None = None,
        timeout: float = 15.0,
        most: int = 0,
    ) -> dict[str, Any]:
        """One request; returns the decoded answer. Raises ApiError. `timeout` is in seconds.

        An answer of more than `most` bytes isn't read and raises an error 413; 0 means no limit.
        """
        headers = {"Accept": "application/json", "Content-Type": content}
        sent = json.dumps(body) if body is not None else None
        with self._asked(method, path, query, timeout, headers, sent) as response:
            text = response.read(most + 1) if most else response.read()
        if most and len(text) > most:
            raise ApiError(413, f"the answer to {method} {path} has more than {most} bytes")
        if response.status >= 400:
            raise ApiError(response.status, _message(text) or f"{method} {path}: {response.status} {response.reason}")
        return json.loads(text) if text else {}

    def text(self, path: str, query: dict[str, str] | None = None) -> str:
        """GET something other than JSON, such as a log."""
        return "\n".join(self.lines(path, query))

    def lines(self, path: str, query: dict[str, str] | None = None, *, timeout: float = 60.0) -> Iterator[str]:
        """GET text line by line as it arrives. Raises ApiError, also when nothing arrives for `timeout` seconds."""
        with self._asked("GET", path, query, timeout) as response:
            if response.status >= 400:
                raise ApiError(response.status, _message(response.read()) or f"GET {path}: {response.status}")
            for line in response:
                yield line.decode(errors="replace").rstrip("\r\n")

    @contextmanager
    def _asked(
        self, method: str, path: str, query: dict[str, str] | None, timeout: float,
        headers: dict[str, str] | None = None, body: str | None = None,
    ) -> Iterator[http.client.HTTPResponse]:  # fmt: skip
        """The answer, as long as its connection is open. Raises ApiError if the server can't be reached."""
        token = (self._account / "token").read_text().strip()
        target = path + ("?" + urllib.parse.urlencode(query) if query else "")
        connection = http.client.HTTPSConnection(self._host, self._port, timeout=timeout, context=self._tls)
        try:
            connection.request(method, target, body, {"Authorization": f"Bearer {token}", **(headers or {})})
            yield connection.getresponse()
        except (OSError, http.client.HTTPException) as error:
            raise ApiError(0, f"the API server did not answer: {error}") from error
        finally:
            connection.close()

    def get(self, path: str, query: dict[str, str] | None = None) -> dict[str, Any]:
        """GET one object or list."""
        return self.call("GET", path, query=query)

    def apply(self, path: str, obj: dict[str, Any], *, manager: str, dry_run: bool = False) -> dict[str, Any]:
        """Server-side apply; takes over fields that another manager set."""
        query = {"fieldManager": manager, "force": "true"} | ({"dryRun": "All"} if dry_run else {})
        return self.call("PATCH", path, obj, content=APPLY, query=query, timeout=35.0)

    def merge(self, path: str, patch: dict[str, Any], *, manager: str) -> dict[str, Any]:
        """JSON merge patch."""
        return self.call("PATCH", path, patch, content=MERGE, query={"fieldManager": manager})


def found(api: Api, path: str, query: dict[str, str] | None = None) -> dict[str, Any] | None:
    """One object or list; None if there is no such name or kind. Raises ApiError."""
    try:
        return api.get(path, query)
    except ApiError as error:
        if error.status == 404:
            return None
        raise


def listed(api: Api, path: str, query: dict[str, str]) -> Iterator[dict[str, Any]]:
    """Every object of a list, fetched `query["limit"]` at a time. Raises ApiError."""
    query = dict(query)
    while True:
        answer = api.get(path, query)
        yield from answer.get("items") or []
        query["continue"] = (answer.get("metadata") or {}).get("continue") or ""
        if not query["continue"]:
            return


def delete(api: Api, path: str, **options: str) -> str:
    """Delete one object; returns "" or why it stays. `options`: further query parameters of the request."""
    try:
        api.call("DELETE", path, {"apiVersion": "v1", "kind": "DeleteOptions", **options})
    except ApiError as error:
        return "" if error.status == 404 else error.message
    return ""


def _message(text: bytes) -> str:
    """The message of a Status object; "" if the text is something else."""
    try:
        return str(json.loads(text).get("message", ""))
    except (ValueError, AttributeError):
        return ""
