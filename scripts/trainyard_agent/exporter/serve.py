"""The server: /metrics returns the last page, /healthz tells whether pages are still made."""

from __future__ import annotations

import gzip
import json
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from trainyard_agent.api import MALFORMED, Api
from trainyard_agent.exporter.looking import Collector
from trainyard_agent.exporter.series import CONTENT_TYPE
from trainyard_agent.rounds import told_to_stop
from trainyard_agent.say import PlatformError, say

PATIENCE_S = 120.0  # without a new page, the exporter is unhealthy
LISTED_S = 60.0  # kinds that can't be listed by then are left out until they can
LEVEL = 1  # of gzip: a tenth of the size for a fiftieth of a second


class LastPage:
    """The last page, plain and compressed, and when it was made (seconds of a monotonic clock)."""

    def __init__(self, awaited: str) -> None:
        self.awaited, self.made = awaited, time.monotonic()
        self.plain, self.packed = b"", b""

    def put(self, text: str) -> None:
        """Stores a new page."""
        plain = text.encode()
        self.plain, self.packed = plain, gzip.compress(plain, LEVEL)
        self.awaited = ""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    wbufsize = -1
    timeout = 30
    server: Server

    def do_GET(self) -> None:
        """Returns a page; 503 before the first one."""
        shown = self.server.shown
        path = self.path.partition("?")[0]
        if path == "/healthz":
            age = time.monotonic() - shown.made
            well = age < PATIENCE_S
            self._answer(200 if well else 503, b"ok\n" if well else f"no page for {age:.0f} s\n".encode())
        elif path != "/metrics":
            self._answer(404, b"/metrics and /healthz are here\n")
        elif not shown.plain:
            self._answer(503, f"not listed yet: {shown.awaited}\n".encode())
        elif "gzip" in (self.headers.get("Accept-Encoding") or ""):
            self._answer(200, shown.packed, CONTENT_TYPE, "gzip")
        else:
            self._answer(200, shown.plain, CONTENT_TYPE)

    def _answer(self, status: int, body: bytes, kind: str = "text/plain; charset=utf-8", packed: str = "") -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        if packed:
            self.send_header("Content-Encoding", packed)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        """Logs nothing: scrapes are frequent."""


class Server(ThreadingHTTPServer):
    """HTTP server on a port; 0 is any free one."""

    daemon_threads = True

    def __init__(self, port: int, shown: LastPage) -> None:
        super().__init__(("", port), _Handler)
        self.shown = shown


def contract_of(file: str) -> dict[str, Any]:
    """The platform contract. Raises PlatformError."""
    try:
        found: dict[str, Any] = json.loads(Path(file).read_text())
        return found | {"teams": found.get("teams") or [], "nodePools": found["nodePools"]}
    except (OSError, ValueError, KeyError) as error:
        raise PlatformError(f"the contract in {file} can't be read: {type(error).__name__}: {error}") from error


def run(contract_file: str, kinds: list[str], period: float, port: int) -> int:
    """Serves until told to stop. Raises PlatformError.

    Args:
        kinds: jobs, as group/version/plural.
        period: seconds between two pages.
    """
    stop = told_to_stop()
    contract = contract_of(contract_file)
    looking = Collector(Api(), contract, kinds)
    shown = LastPage(", ".join(looking.awaited()))
    server = Server(port, shown)
    threading.Thread(target=server.serve_forever, name="server", daemon=True).start()
    looking.start(stop)
    threading.Thread(target=looking.aside.run, args=(stop, lambda: contract), name="aside", daemon=True).start()
    say(f"serving metrics on port {port}, updated every {period:g} s")
    begun, said = time.monotonic(), ""
    while not stop.is_set():
        if awaited := looking.awaited(patient=time.monotonic() < begun + LISTED_S):
            shown.awaited, shown.made = ", ".join(awaited), time.monotonic()
            stop.wait(0.5)
            continue
        trouble = ""
        try:
            now = contract_of(contract_file)
            if now["nodePools"] != contract["nodePools"]:
                raise SystemExit("the contract's node pools have changed, so all nodes are read again")
            contract = now
            shown.put(looking.page(contract, time.time()))
            shown.made = time.monotonic()
        except PlatformError as error:
            trouble = str(error)
        except MALFORMED as error:
            trouble = f"no page was written: {type(error).__name__}: {error}"
        if trouble and trouble != said:
            say(trouble)
        said = trouble
        stop.wait(period)
    server.shutdown()
    return 0
