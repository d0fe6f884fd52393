"""An MLflow tracking server that records requests and implements only the calls of our agent.

Unit tests import it, and it is copied into a pod as text: `python3 -c TEXT` serves at port 5000 and prints
each call as a line of JSON.
"""

import json
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

PORT = 5000
ABSENT = {"error_code": "RESOURCE_DOES_NOT_EXIST", "message": "no such experiment"}
REFUSED = {"error_code": "INVALID_PARAMETER_VALUE", "message": "the parameter was logged with another value"}


class Tracking(BaseHTTPRequestHandler):
    """Gives each experiment and run its name as its id; refuses parameters with names in `server.refused`."""

    server: "Server"

    def do_GET(self) -> None:
        [name] = parse_qs(urlsplit(self.path).query)["experiment_name"]
        made = any(body.get("name") == name for _, body, _ in self.server.asked)
        self.keep({})
        self.answer(200 if made else 404, {"experiment": {"experiment_id": name}} if made else ABSENT)

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.keep(body)
        refused = any(one["key"] in self.server.refused for one in body.get("params", ()))
        made = {"experiment_id": body.get("name"), "run": {"info": {"run_id": body.get("run_name")}}}
        self.answer(400 if refused else 200, REFUSED if refused else made)

    def keep(self, body: Any) -> None:
        """Records the call with its body and log-in."""
        call = self.path.partition("/api/2.0/mlflow/")[2].partition("?")[0]
        self.server.asked.append((call, body, self.headers.get("Authorization", "")))
        print(json.dumps({"call": call, "body": body}), flush=True)

    def answer(self, code: int, body: Any) -> None:
        """Sends one object."""
        data = json.dumps(body).encode()
        self.send_response(code)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, format: str, *args: Any) -> None:
        """Logs nothing: `keep` prints the calls."""


class Server(ThreadingHTTPServer):
    """`asked`: calls with their bodies and log-ins, in their order."""

    def __init__(self, address: tuple[str, int]) -> None:
        super().__init__(address, Tracking)
        self.asked: list[tuple[str, Any, str]] = []
        self.refused: set[str] = set()


if __name__ == "__main__":
    Server(("", PORT)).serve_forever()
