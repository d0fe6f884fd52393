"""Requests to a server of the tests, each on a connection of its own unless one is given."""

import hashlib
import http.client
import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from trainyard_dev.serving.process import Server

HEADER = "Inference-Header-Content-Length"
KEYS = ("first-key", "second-key")


@dataclass(frozen=True)
class Said:
    """An answer."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        """The body as JSON."""
        return json.loads(self.body)


def ask(server: Server, method: str, path: str, body: Any = None, key: str = "", **headers: str) -> Said:
    """One request; a body that isn't bytes goes as JSON."""
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=60)
    try:
        blob = body if isinstance(body, bytes | None) else json.dumps(body).encode()
        said = {name.replace("_", "-"): value for name, value in headers.items()}
        if key:
            said["Authorization"] = f"Bearer {key}"
        connection.request(method, path, blob, said)
        found = connection.getresponse()
        return Said(found.status, {name.lower(): value for name, value in found.getheaders()}, found.read())
    finally:
        connection.close()


def write_keys(file: Path, *keys: str) -> None:
    """The list of digests that a server with keys reads."""
    file.write_text(json.dumps([hashlib.sha256(one.encode()).hexdigest() for one in keys]))


def refused(launch: Callable[..., Server], source: Any, words: str, **env: str) -> Server:
    """A server that ends at once with these words."""
    server = launch(source, ready=False, **env)
    assert server.process.wait(120) == 1
    assert words in server.output()
    return server


def tensor(rows: list[Any], name: str = "image") -> dict[str, Any]:
    """Images as an input of the protocol."""
    flat = [value for row in rows for value in row]
    return {"name": name, "datatype": "FP32", "shape": [len(rows), len(rows[0])], "data": flat}


def series(server: Server) -> dict[str, float]:
    """What the second port says of itself, by name and labels as they are written."""
    status, text = server.admin_page("/metrics")
    assert status == 200
    lines = (line.rpartition(" ") for line in text.splitlines() if line and not line.startswith("#"))
    return {name: float(value) for name, _, value in lines}
