"""A small web service: each answer is computed from a table that it holds."""

import json
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

STOCK = {f"article-{number}": number * 7 % 100 for number in range(2000)}


class Shop(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        body = json.dumps(sorted(STOCK.items(), key=lambda item: item[1])[:200]).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *words: object) -> None:
        """Logs nothing: a line for each request would distort the measurement."""


ThreadingHTTPServer(("", 8080), Shop).serve_forever()
