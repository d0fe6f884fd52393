"""A receiver of alerts: prints each alert that Alertmanager sends as a line of JSON.

Copied into a pod as text: `python3 -c TEXT` serves at port 9096.
"""

import json
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

PORT = 9096


class Receiver(BaseHTTPRequestHandler):
    """Accepts any POST of Alertmanager's webhook. A connection without a request doesn't block others."""

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        told = [json.dumps({"status": alert["status"], "labels": alert["labels"]}) + "\n" for alert in body["alerts"]]
        sys.stdout.write("".join(told))  # in one call, so that lines stay whole
        sys.stdout.flush()
        self.send_response(204)
        self.end_headers()

    def log_message(self, format: str, *args: Any) -> None:
        """Logs nothing: `do_POST` prints the alerts."""


if __name__ == "__main__":
    ThreadingHTTPServer(("", PORT), Receiver).serve_forever()
