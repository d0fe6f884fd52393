"""An API server for reading alone: lists in pages, watches with bookmarks, over TLS. It costs next to nothing itself.

It gives what a real one gives, managed fields included, so that the reader has the same work.
"""

from __future__ import annotations

import contextlib
import json
import queue
import ssl
import subprocess
import threading
import urllib.parse
from collections.abc import Iterable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from trainyard_dev.bench.exporter_cluster import AT, KINDS

Object = dict[str, Any]
BOOKMARK_S = 10.0
PLURALS = {
    ("v1", "Pod"): "pods", ("v1", "Node"): "nodes", ("v1", "ResourceQuota"): "resourcequotas",
    ("v1", "PersistentVolumeClaim"): "persistentvolumeclaims",
    **{(f"{group}/{version}", kind): plural for group, version, kind, plural, _ in KINDS},
}  # fmt: skip


class Collection:
    """All objects of one kind, as they are sent, and who watches them."""

    def __init__(self, version: str, kind: str) -> None:
        self.version, self.kind = version, kind
        self.items: list[bytes] = []
        self.watchers: list[queue.SimpleQueue[bytes]] = []

    def page(self, limit: int, begin: int, at: int) -> bytes:
        """A list from there on."""
        more = str(begin + limit) if begin + limit < len(self.items) else ""
        meta = json.dumps({"resourceVersion": str(at), "continue": more})
        head = f'{{"kind":"{self.kind}List","apiVersion":"{self.version}","metadata":{meta},"items":['
        return head.encode() + b",".join(self.items[begin : begin + limit]) + b"]}"


class ReadingServer(ThreadingHTTPServer):
    """Serves objects on a free port until it is left. `folder` gets its certificate."""

    daemon_threads = True
    request_queue_size = 64

    def __init__(self, folder: Path, objects: Iterable[Object]) -> None:
        self.collections = {
            f"{_root(version)}/{plural}": Collection(version, kind) for (version, kind), plural in PLURALS.items()
        }
        self.version = 0
        for obj in objects:
            found = self.collections.get(_path(obj))
            if found:
                self.version += 1
                found.items.append(_encoded(completed(obj, self.version)))
        super().__init__(("127.0.0.1", 0), _Handler)
        self.certificate = _certificate(folder)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(self.certificate)
        self.socket = context.wrap_socket(self.socket, server_side=True, do_handshake_on_connect=False)

    @contextlib.contextmanager
    def serving(self) -> Iterator[ReadingServer]:
        """Answers for the time of the body."""
        threading.Thread(target=self.serve_forever, daemon=True).start()
        try:
            yield self
        finally:
            self.shutdown()
            self.server_close()

    @property
    def pods(self) -> Collection:
        """The pods."""
        return self.collections["/api/v1/pods"]

    def change(self, number: int) -> None:
        """Sends a pod to whoever watches, as changed."""
        self.version += 1
        obj = json.loads(self.pods.items[number])
        obj["metadata"]["resourceVersion"] = str(self.version)
        self.pods.items[number] = _encoded(obj)
        for watcher in self.pods.watchers:
            watcher.put(b'{"type":"MODIFIED","object":' + self.pods.items[number] + b"}\n")

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Whoever goes away in the middle is no error."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: ReadingServer

    def do_GET(self) -> None:
        """A list, a watch, or that there is no such thing."""
        path, _, text = self.path.partition("?")
        query = dict(urllib.parse.parse_qsl(text))
        found = self.server.collections.get(path)
        if not found:
            self._answer(404, b'{"kind":"Status","status":"Failure","message":"there is no such thing","code":404}')
        elif query.get("watch"):
            self._watch(found)
        else:
            limit = int(query.get("limit") or len(found.items) or 1)
            self._answer(200, found.page(limit, int(query.get("continue") or 0), self.server.version))

    def _watch(self, found: Collection) -> None:
        mine: queue.SimpleQueue[bytes] = queue.SimpleQueue()
        found.watchers.append(mine)
        self.send_response(200)
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        try:
            while True:
                try:
                    line = mine.get(timeout=BOOKMARK_S)
                except queue.Empty:
                    meta = {"resourceVersion": str(self.server.version)}
                    line = (
                        json.dumps({"type": "BOOKMARK", "object": {"kind": found.kind, "metadata": meta}}).encode()
                        + b"\n"
                    )
                self.wfile.write(f"{len(line):x}\r\n".encode() + line + b"\r\n")
        finally:
            found.watchers.remove(mine)

    def _answer(self, status: int, body: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        """Nobody reads it."""


def completed(obj: Object, version: int) -> Object:
    """With what the server adds: who set which field takes a third of an object."""
    managed = [
        {"manager": manager, "operation": "Update", "apiVersion": obj["apiVersion"], "time": AT,
         "fieldsType": "FieldsV1", "fieldsV1": {f"f:{part}": _fields(obj[part])}}
        for manager, part in (("training-operator.v1", "spec"), ("kubelet", "status")) if obj.get(part)
    ]  # fmt: skip
    added = {"uid": f"10000000-0000-4000-8000-{version:012}", "resourceVersion": str(version), "generation": 1,
             "creationTimestamp": AT, "managedFields": managed}  # fmt: skip
    return {"kind": obj["kind"], "apiVersion": obj["apiVersion"], **obj, "metadata": {**obj["metadata"], **added}}


def _fields(value: Any) -> Object:
    if isinstance(value, dict):
        return {f"f:{key}": _fields(part) for key, part in value.items()}
    if isinstance(value, list):
        named = [part for part in value if isinstance(part, dict) and (part.get("name") or part.get("type"))]
        return {f'k:{{"name":"{part.get("name") or part.get("type")}"}}': {".": {}, **_fields(part)} for part in named}
    return {}


def _encoded(obj: Object) -> bytes:
    return json.dumps(obj, separators=(",", ":")).encode()


def _root(version: str) -> str:
    return f"/apis/{version}" if "/" in version else f"/api/{version}"


def _path(obj: Object) -> str:
    return f"{_root(obj['apiVersion'])}/{PLURALS.get((obj['apiVersion'], obj['kind']), '')}"


def _certificate(folder: Path) -> Path:
    """A certificate and its key in one file, its own authority."""
    file = folder / "server.pem"
    made = subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2",
         "-subj", "/CN=bench", "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", "-", "-out", "-"],
        check=True, capture_output=True,
    )  # fmt: skip
    file.touch(mode=0o600)
    file.write_bytes(made.stdout)
    return file
