"""A small API server over HTTP that has ConfigMaps and nothing else, and a kubeconfig for it."""

from __future__ import annotations

import http.server
import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import yaml
from local_server import serving


class Maps:
    """`data` has the ConfigMaps' data by "namespace/name"; `asked` are the paths of all requests."""

    def __init__(self) -> None:
        self.data: dict[str, dict[str, str]] = {}
        self.asked: list[str] = []
        self.host = ""

    def kubeconfig(self, file: Path, namespace: str) -> Path:
        """A file by which one reaches it."""
        name = "maps"
        context = {"cluster": name, "user": name, "namespace": namespace}
        document = {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": name,
            "clusters": [{"name": name, "cluster": {"server": self.host}}],
            "users": [{"name": name, "user": {}}],
            "contexts": [{"name": name, "context": context}],
        }
        file.write_text(yaml.safe_dump(document))
        return file


@contextmanager
def served() -> Iterator[Maps]:
    """The server on a port of its own, for as long as the block lasts."""
    known = Maps()

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            known.asked.append(self.path)
            words = self.path.partition("?")[0].split("/")
            found = known.data.get(f"{words[4]}/{words[6]}") if words[5:6] == ["configmaps"] else None
            absent = {"kind": "Status", "reason": "NotFound", "message": "not found", "code": 404}
            body = json.dumps(absent if found is None else {"kind": "ConfigMap", "data": found}).encode()
            self.send_response(404 if found is None else 200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    with serving(Handler) as known.host:
        yield known
