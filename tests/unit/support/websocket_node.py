"""A server that speaks the API server's WebSocket protocol of pods, on a real socket."""

import base64
import hashlib
import socketserver
import struct
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from websocket import ABNF

GUID = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"  # RFC 6455


class Node(socketserver.StreamRequestHandler):
    """One connection: the request, the handshake, and messages by channel."""

    def asked(self) -> tuple[str, list[tuple[str, str]]]:
        """The first line and the headers of the request, by lower-case names."""
        line, headers = self.rfile.readline().decode(), []
        while (header := self.rfile.readline().decode().strip()) != "":
            name, _, value = header.partition(": ")
            headers.append((name.lower(), value))
        return line, headers

    def refuse(self, body: bytes) -> None:
        self.wfile.write(b"HTTP/1.1 403 Forbidden\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body))

    def accept(self, headers: list[tuple[str, str]], protocol: str) -> None:
        key = hashlib.sha1((dict(headers)["sec-websocket-key"] + GUID).encode()).digest()
        self.wfile.write(
            (
                "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
                f"Sec-WebSocket-Accept: {base64.b64encode(key).decode()}\r\nSec-WebSocket-Protocol: {protocol}\r\n\r\n"
            ).encode()
        )

    def receive(self) -> bytes | None:
        """Receives a message; b"" for a ping, None at the end."""
        head = self.rfile.read(2)
        if len(head) < 2 or head[0] & 0x0F == ABNF.OPCODE_CLOSE:
            return None
        assert head[0] & 0x8F in (0x82, 0x89)
        assert head[1] & 0x80, "clients mask what they send"
        length = head[1] & 0x7F
        if length >= 126:
            length = int.from_bytes(self.rfile.read(2 if length == 126 else 8), "big")
        mask, data = self.rfile.read(4), self.rfile.read(length)
        key = (mask * (length // 4 + 1))[:length]
        plain = (int.from_bytes(data, "big") ^ int.from_bytes(key, "big")).to_bytes(length, "big")
        return b"" if head[0] & 0x0F == ABNF.OPCODE_PING else plain

    def send(self, channel: int, data: bytes) -> None:
        size = len(data) + 1
        head = bytes([0x82, size]) if size < 126 else b"\x82\x7e" + struct.pack("!H", size)
        self.wfile.write(head + bytes([channel]) + data)

    def close(self) -> None:
        self.wfile.write(b"\x88\x02\x03\xe8")


@contextmanager
def listening(node: type[Node]) -> Iterator[Any]:
    """Runs the server on its own port; `seen` has what the handler records."""
    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), node) as server:
        server.daemon_threads, server.seen = True, []  # type: ignore[attr-defined]
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server
        server.shutdown()
