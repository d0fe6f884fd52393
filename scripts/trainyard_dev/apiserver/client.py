"""A client of one API server over one connection, as the administrator or any other identity."""

from __future__ import annotations

import http.client
import json
import re
import ssl
from dataclasses import dataclass, field
from time import monotonic
from typing import Any
from urllib.parse import urlencode

from trainyard.errors import TrainyardError

PATCH, APPLY = "application/json-patch+json", "application/apply-patch+yaml"
MANAGER = "trainyard"
KEPT_S = 60.0  # the server ends connections that are idle for some minutes
WARNING = re.compile(r'299 \S+ "((?:[^"\\]|\\.)*)"')


@dataclass(frozen=True)
class Identity:
    """The identity that sends a request."""

    user: str
    groups: tuple[str, ...] = ()

    @classmethod
    def account(cls, namespace: str, name: str) -> Identity:
        """The identity of a service account; the server adds its groups."""
        return cls(f"system:serviceaccount:{namespace}:{name}")


@dataclass(frozen=True)
class Answer:
    """The server's answer: `message` is the reason of a refusal; `warnings` come with either outcome."""

    status: int
    body: dict[str, Any] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()

    @property
    def ok(self) -> bool:
        """Whether the request was accepted."""
        return self.status < 400

    @property
    def message(self) -> str:
        """The reason of a refusal; empty when the request was accepted."""
        return "" if self.ok else str(self.body.get("message") or self.body.get("text") or f"code {self.status}")


class Client:
    """A client that sends JSON over one persistent connection. Not for several threads."""

    def __init__(self, host: str, tls: ssl.SSLContext) -> None:
        self._connection = http.client.HTTPSConnection(host, context=tls, timeout=30)
        self._kinds: dict[str, dict[str, tuple[str, bool]]] = {}
        self._used = monotonic()

    def call(
        self,
        method: str,
        path: str,
        body: dict[str, Any] | list[dict[str, Any]] | None = None,
        *,
        identity: Identity | None = None,
        content: str = "application/json",
        query: dict[str, str] | None = None,
    ) -> Answer:
        """Sends one request. A refusal is an Answer; only a server that doesn't answer raises TrainyardError."""
        headers = [("Content-Type", content), ("Accept", "application/json")]
        if identity:
            headers += [("Impersonate-User", identity.user)]
            headers += [("Impersonate-Group", group) for group in identity.groups]
        data = json.dumps(body).encode() if body is not None else b""
        if monotonic() > self._used + KEPT_S:
            self._connection.close()  # the next request opens it again
        self._used = monotonic()
        try:
            self._connection.putrequest(method, path + ("?" + urlencode(query) if query else ""))
            for name, value in [*headers, ("Content-Length", str(len(data)))]:
                self._connection.putheader(name, value)
            self._connection.endheaders(data)
            response = self._connection.getresponse()
            text = response.read()
        except (OSError, http.client.HTTPException) as error:
            self._connection.close()
            raise TrainyardError(f"the API server did not answer: {error}", hint="run the command again") from None
        warnings = [match for line in response.headers.get_all("Warning", []) for match in WARNING.findall(line)]
        unescaped = tuple(re.sub(r"\\(.)", r"\1", warning) for warning in warnings)
        return Answer(response.status, _decoded(text), unescaped)

    def path(self, obj: dict[str, Any], namespace: str = "") -> str:
        """The URL path of objects of this kind. Raises TrainyardError when the server doesn't have the kind."""
        version, kind = str(obj.get("apiVersion", "")), str(obj.get("kind", ""))
        root = f"/apis/{version}" if "/" in version else f"/api/{version}"
        if kind not in self._kinds.get(version, {}):
            found = self.call("GET", root).body.get("resources", [])
            self._kinds[version] = {r["kind"]: (r["name"], r["namespaced"]) for r in found if "/" not in r["name"]}
        if kind not in self._kinds[version]:
            raise TrainyardError(
                f"the platform does not serve kind {kind or '(none)'} in {version or 'no apiVersion'}",
                hint="correct apiVersion and kind",
            )
        resource, namespaced = self._kinds[version][kind]
        if not namespaced:
            return f"{root}/{resource}"
        return f"{root}/namespaces/{obj.get('metadata', {}).get('namespace') or namespace or 'default'}/{resource}"

    def create(
        self, obj: dict[str, Any], *, identity: Identity | None = None, namespace: str = "", dry_run: bool = False
    ) -> Answer:
        """Sends a POST; with `dry_run` all admission runs and nothing is stored."""
        return self.call("POST", self.path(obj, namespace), obj, identity=identity, query=_query(dry_run))

    def replace(
        self, obj: dict[str, Any], *, identity: Identity | None = None, dry_run: bool = False, sub: str = ""
    ) -> Answer:
        """Sends a PUT of a whole object, or of its subresource `sub`."""
        path = "/".join(filter(None, [self.path(obj), obj["metadata"]["name"], sub]))
        return self.call("PUT", path, obj, identity=identity, query=_query(dry_run))

    def patch(
        self,
        obj: dict[str, Any],
        operations: list[dict[str, Any]],
        *,
        identity: Identity | None = None,
        dry_run: bool = False,
        sub: str = "",
    ) -> Answer:
        """Sends a JSON Patch of the stored object, or of its subresource `sub`."""
        path = "/".join(filter(None, [self.path(obj), obj["metadata"]["name"], sub]))
        return self.call("PATCH", path, operations, identity=identity, content=PATCH, query=_query(dry_run))

    def apply(self, obj: dict[str, Any], *, namespace: str = "") -> Answer:
        """Sends a server-side apply as the administrator."""
        path = f"{self.path(obj, namespace)}/{obj['metadata']['name']}"
        return self.call("PATCH", path, obj, content=APPLY, query={"fieldManager": MANAGER, "force": "true"})

    def find(self, kind: dict[str, Any], name: str) -> dict[str, Any] | None:
        """Reads one object by name, or None; `kind` has apiVersion, kind and metadata.namespace."""
        answer = self.call("GET", f"{self.path(kind)}/{name}")
        return answer.body if answer.ok else None


def _query(dry_run: bool) -> dict[str, str]:
    return {"fieldManager": MANAGER, **({"dryRun": "All"} if dry_run else {})}


def _decoded(text: bytes) -> dict[str, Any]:
    try:
        found = json.loads(text)
    except ValueError:
        found = None
    return found if isinstance(found, dict) else {"text": text.decode(errors="replace")}
