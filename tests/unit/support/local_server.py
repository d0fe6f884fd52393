"""A real HTTP server on this machine for tests of its clients, and a kubeconfig for it."""

import http.server
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import yaml


class Answers(http.server.BaseHTTPRequestHandler):
    """A handler that reads and answers JSON, and prints nothing; a server has `get` or `post` or both."""

    def do_GET(self) -> None:
        self.get()

    def do_POST(self) -> None:
        self.post()

    def get(self) -> None:
        self.send_error(501)

    def post(self) -> None:
        self.send_error(501)

    def body(self) -> bytes:
        return self.rfile.read(int(self.headers["Content-Length"]))

    def answer(self, code: int, body: Any) -> None:
        """Answers with an object as JSON, or with bytes as they are."""
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        self.send_response(code)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_: object) -> None:
        pass


@contextmanager
def serving(handler: type[http.server.BaseHTTPRequestHandler]) -> Iterator[str]:
    """Serves on a free port while the block runs; yields its address, such as http://127.0.0.1:40123."""
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def kubeconfig(file: Path, host: str, namespace: str = "vision", **user: Any) -> Path:
    """Writes a kubeconfig for an API server at that address."""
    document = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "lab",
        "clusters": [{"name": "lab", "cluster": {"server": host}}],
        "contexts": [{"name": "lab", "context": {"cluster": "lab", "user": "me", "namespace": namespace}}],
        "users": [{"name": "me", "user": user}],
    }
    file.write_text(yaml.safe_dump(document))
    return file
