"""Objects, logs, watches and streams of one cluster, as plain dictionaries."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import IO, Any
from urllib.parse import urlencode

import urllib3

from trainyard.errors import TrainyardError
from trainyard.kube.streams import Done, Exec
from trainyard.kube.tries import cause, retries

MERGE, JSON_PATCH, APPLY = "application/merge-patch+json", "application/json-patch+json", "application/apply-patch+yaml"
MANAGER = "trainyard"
CONNECT_S, READ_S, WATCH_S = 10.0, 60.0, 240
Object = dict[str, Any]


class KubeError(TrainyardError):
    """The cluster refused or did not answer; `status` is the HTTP status, 0 if the cluster could not be reached."""

    def __init__(self, what: str, *, status: int = 0, reason: str = "", where: str = "", hint: str = "") -> None:
        super().__init__(what, where=where, hint=hint)
        self.status, self.reason = status, reason


class Kube:
    """Client of one cluster for one user; safe for use by several threads."""

    def __init__(
        self, configuration: Any, namespace: str = "default", user: str = "", groups: Sequence[str] = ()
    ) -> None:
        from kubernetes.client.rest import RESTClientObject

        self.configuration, self.namespace = configuration, namespace
        self.user, self.groups = user, tuple(groups)
        self.host = str(configuration.host).rstrip("/")
        self._pool = RESTClientObject(configuration, maxsize=8).pool_manager
        self._kinds: dict[str, dict[str, tuple[str, bool]]] = {}

    def path(self, version: str, resource: str, name: str = "", *, namespace: str | None = None, sub: str = "") -> str:
        """API path of objects: `path("v1", "pods")`. `namespace=""` means objects without a namespace."""
        root = f"/apis/{version}" if "/" in version else f"/api/{version}"
        place = self.namespace if namespace is None else namespace
        return "/".join(filter(None, [root, f"namespaces/{place}" if place else "", resource, name, sub]))

    def path_of(self, obj: Object) -> str:
        """API path of objects of this object's kind, in its own namespace, else the chosen one."""
        version, kind = str(obj.get("apiVersion", "")), str(obj.get("kind", ""))
        if kind not in self._kinds.get(version, {}):
            root = f"/apis/{version}" if "/" in version else f"/api/{version}"
            found = (self.find(root) or {}).get("resources", [])
            self._kinds[version] = {r["kind"]: (r["name"], r["namespaced"]) for r in found if "/" not in r["name"]}
        if kind not in self._kinds[version]:
            raise KubeError(
                f"the cluster knows no kind {kind or '(none)'} of {version or 'no apiVersion'}",
                status=404,
                hint="correct apiVersion and kind, or ask your platform engineer whether the component is installed",
            )
        resource, namespaced = self._kinds[version][kind]
        place = obj.get("metadata", {}).get("namespace") or self.namespace
        return self.path(version, resource, namespace=place if namespaced else "")

    def get(self, path: str, *, accept: str = "application/json", **query: str) -> Object:
        """Gets one object or list, in the form that `accept` names. Raises KubeError."""
        return self._json("GET", path, query=query, accept=accept)

    def find(self, path: str, **query: str) -> Object | None:
        """Gets one object or list, or None if it does not exist."""
        try:
            return self.get(path, **query)
        except KubeError as error:
            if error.status == 404:
                return None
            raise

    def list(self, path: str, **query: str) -> list[Object]:
        """Lists all objects at `path`, in pages; `labelSelector` and `fieldSelector` are as in the API."""
        found: list[Object] = []
        page: dict[str, str] = {}
        while True:
            answer = self.get(path, **{"limit": "500", **query, **page})
            found += answer.get("items", [])
            page = {"continue": answer.get("metadata", {}).get("continue", "")}
            if not page["continue"]:
                return found

    def create(self, obj: Object, *, dry_run: bool = False) -> Object:
        """Creates an object; with `dry_run` admission runs, but nothing is stored."""
        query = {"fieldManager": MANAGER, **({"dryRun": "All"} if dry_run else {})}
        return self._json("POST", self.path_of(obj), obj, query=query)

    def apply(self, obj: Object) -> Object:
        """Applies an object server-side."""
        path = f"{self.path_of(obj)}/{obj['metadata']['name']}"
        return self._json("PATCH", path, obj, content=APPLY, query={"fieldManager": MANAGER, "force": "true"})

    def patch(self, path: str, change: Any, *, content: str = MERGE) -> Object:
        """Patches an object; `content` is the type of patch."""
        return self._json("PATCH", path, change, content=content, query={"fieldManager": MANAGER})

    def delete(self, path: str, *, propagation: str = "Background", grace_s: int | None = None) -> bool:
        """Deletes an object and returns whether it existed; the deletion continues in the background."""
        body: Object = {"propagationPolicy": propagation}
        if grace_s is not None:
            body["gracePeriodSeconds"] = grace_s
        try:
            self._json("DELETE", path, body)
        except KubeError as error:
            if error.status == 404:
                return False
            raise
        return True

    def watch(self, path: str, **query: str) -> Iterator[tuple[str, Object]]:
        """Yields (ADDED | MODIFIED | DELETED, object): first the existing objects, then every change, without an end.

        Resumes a watch that ends or breaks. Raises KubeError if the server stays unavailable.
        """
        version, failures = "", 0
        while True:
            asked = {**query, "watch": "true", "timeoutSeconds": str(WATCH_S), "allowWatchBookmarks": "true"}
            if version:
                asked["resourceVersion"] = version
            try:
                for line in self.lines(path, READ_S + WATCH_S, **asked):
                    event = json.loads(line)
                    failures = 0
                    if event["type"] == "ERROR":
                        version = ""  # our version is too old: list everything again
                        break
                    version = event["object"]["metadata"].get("resourceVersion", version)
                    if event["type"] != "BOOKMARK":
                        yield event["type"], event["object"]
            except KubeError as error:
                failures += 1
                if error.status == 410:
                    version = ""
                elif error.status or failures > 3:
                    raise

    def logs(
        self, pod: str, container: str = "", *, follow: bool = False, tail: int | None = None, since: str = ""
    ) -> Iterator[bytes]:
        """Yields the lines of a container's log, without line ends. `since` is an RFC 3339 time."""
        query = {"follow": "true"} if follow else {}
        if container:
            query["container"] = container
        if tail is not None:
            query["tailLines"] = str(tail)
        if since:
            query["sinceTime"] = since
        yield from self.lines(self.path("v1", "pods", pod, sub="log"), None if follow else READ_S, **query)

    def exec(
        self,
        pod: str,
        command: Sequence[str],
        *,
        container: str = "",
        stdin: IO[bytes] | None = None,
        stdout: IO[bytes] | None = None,
        timeout_s: float | None = None,
    ) -> Done:
        """Runs a program in a container until it ends, with all of `stdin`; writes its output to `stdout`, as bytes.

        Without `stdout`, the result holds the output. `timeout_s` limits the silence, not the total time.
        A failed program is a result with its exit code; KubeError if it could not be started or the stream broke.
        """
        query = [("command", word) for word in command]
        query += [("stdin", "true")] if stdin else []
        query += [("stdout", "true"), ("stderr", "true")]
        query += [("container", container)] if container else []
        path = f"{self.path('v1', 'pods', pod, sub='exec')}?{urlencode(query)}"
        try:
            return Exec(self.host, path, self.stream_headers(), self.configuration).run(stdin, stdout, timeout_s)
        except ConnectionError as error:
            status = getattr(error, "status", 0)
            raise KubeError(str(error), status=status, where=f"pod {self.namespace}/{pod}") from None

    def lines(self, path: str, read_s: float | None, **query: str) -> Iterator[bytes]:
        """Yields the lines of a streamed response until the server ends it. KubeError if the connection breaks."""
        with self._reached(path):
            answer = self._pool.request(
                "GET",
                self.host + path + (f"?{urlencode(query)}" if query else ""),
                headers=self._headers(),
                timeout=urllib3.Timeout(connect=CONNECT_S, read=read_s),
                retries=retries(False),
                preload_content=False,
            )
            try:
                if answer.status >= 400:
                    raise _refusal(answer.status, answer.data, path)
                rest = b""
                for piece in answer.stream(65536):
                    *whole, rest = (rest + piece).split(b"\n")
                    yield from whole
                if rest:
                    yield rest
            finally:
                answer.close()

    def _json(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        content: str = "application/json",
        query: Mapping[str, str] | None = None,
        accept: str = "application/json",
    ) -> Object:
        headers = self._headers()
        headers["Content-Type"], headers["Accept"] = content, accept
        with self._reached(path):
            answer = self._pool.request(
                method,
                self.host + path + (f"?{urlencode(query)}" if query else ""),
                body=json.dumps(body).encode() if body is not None else None,
                headers=headers,
                timeout=urllib3.Timeout(connect=CONNECT_S, read=READ_S),
                retries=retries(method == "GET"),
            )
        if answer.status >= 400:
            raise _refusal(answer.status, answer.data, path)
        try:
            found = json.loads(answer.data)
        except ValueError:
            found = None
        if not isinstance(found, dict):
            raise KubeError(
                "this is not a Kubernetes API", where=self.host, hint="correct the server in the kubeconfig"
            )
        return found

    def stream_headers(self) -> urllib3.HTTPHeaderDict:
        """Headers of a stream to a pod, without Accept: the kubelet refuses it since Kubernetes 1.36."""
        headers = self._headers()
        del headers["Accept"]
        return headers

    def _headers(self) -> urllib3.HTTPHeaderDict:
        headers = urllib3.HTTPHeaderDict({"Accept": "application/json"})
        for setting in self.configuration.auth_settings().values():  # refreshes an expiring token
            if setting["in"] == "header" and setting["value"]:
                headers[setting["key"]] = setting["value"]
        if self.user:
            headers["Impersonate-User"] = self.user
            for group in self.groups:
                headers.add("Impersonate-Group", group)
        return headers

    @contextmanager
    def _reached(self, path: str) -> Iterator[None]:
        try:
            yield
        except urllib3.exceptions.HTTPError as error:
            why = getattr(error, "reason", None) or error
            raise KubeError(
                f"cannot reach the API server: {cause(why)}",
                where=self.host,
                hint="check that the cluster is running and reachable from here, or choose another with --context",
            ) from None


def _refusal(status: int, data: bytes, path: str) -> KubeError:
    try:
        answer = json.loads(data)
    except ValueError:
        answer = {}
    answer = answer if isinstance(answer, dict) else {}
    message = str(answer.get("message") or data.decode(errors="replace").strip()[:300] or f"code {status}")
    hint = ""
    if status == 401:
        hint = "log in again: the cluster does not know who you are"
    elif status == 403 and "denied" not in message and "is forbidden: User" in message:
        hint = "ask your platform engineer for the right, or choose your own team with -n"
    return KubeError(message, status=status, reason=str(answer.get("reason", "")), hint=hint)
