"""An MLflow tracking server that keeps what it is asked and knows no more than the calls of our agent.

Of tests below a cluster it is imported, into a pod it travels as text: `python3 -c TEXT` serves at port 5000 and prints
each call as a line of JSON.
"""

import json
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

PORT = 5000
ANSWERS = {
    "experiments/create": {"experiment_id": "7"},
    "runs/create": {"run": {"info": {"run_id": "r1"}}},
    "runs/search": {},
    "runs/log-batch": {},
    "runs/update": {},
}
EXPERIMENT = {"experiment": {"experiment_id": "7"}}
ABSENT = {"error_code": "RESOURCE_DOES_NOT_EXIST", "message": "no such experiment"}
REFUSED = {"error_code": "INVALID_PARAMETER_VALUE", "message": "the parameter was logged with another value"}


class Tracking(BaseHTTPRequestHandler):
    """Knows no experiment before one is made; refuses parameters of the names in `server.refused`."""

    server: "Server"

    def do_GET(self) -> None:
        made = any(call == "experiments/create" for call, _, _ in self.server.asked)
        self.keep({})
        self.answer(200 if made else 404, EXPERIMENT if made else ABSENT)

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        call = self.keep(body)
        refused = any(one["key"] in self.server.refused for one in body.get("params", ()))
        self.answer(400 if refused else 200, REFUSED if refused else ANSWERS[call])

    def keep(self, body: Any) -> str:
        """The call's name, with its body and log-in among those asked."""
        call = self.path.partition("/api/2.0/mlflow/")[2].partition("?")[0]
        self.server.asked.append((call, body, self.headers.get("Authorization", "")))
        print(json.dumps({"call": call, "body": body}), flush=True)
        return call

    def answer(self, code: int, body: Any) -> None:
        """One object."""
        data = json.dumps(body).encode()
        self.send_response(code)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, format: str, *args: Any) -> None:
        """Calls are told by `keep`."""


class Server(ThreadingHTTPServer):
    """`asked`: calls with their bodies and log-ins, in their order."""

    def __init__(self, address: tuple[str, int]) -> None:
        super().__init__(address, Tracking)
        self.asked: list[tuple[str, Any, str]] = []
        self.refused: set[str] = set()


if __name__ == "__main__":
    sys.exit(Server(("", PORT)).serve_forever())
