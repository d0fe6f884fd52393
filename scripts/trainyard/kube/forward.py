"""Forwarding of a local port to a pod: each connection is one WebSocket to the API server, as in `kubectl`.

Uses v4.channel.k8s.io: each port has two channels, data and errors, and each channel begins with the port number.
"""

import select
import socketserver
import ssl
from collections.abc import Callable

import websocket

from trainyard.kube.client import Kube, KubeError
from trainyard.kube.streams import CHUNK, PING_S, StreamError, opened

PROTOCOL = "v4.channel.k8s.io"
DATA, ERROR = 0, 1
PORT_BYTES = 2
Say = Callable[[str], None]


class Forward(socketserver.ThreadingTCPServer):
    """Server on 127.0.0.1 that forwards to the pod; `port` 0 chooses a free port."""

    daemon_threads = True
    allow_reuse_address = True

    def __init__(self, kube: Kube, pod: str, pod_port: int, port: int, say: Say) -> None:
        self.kube, self.pod, self.pod_port, self.say = kube, pod, pod_port, say
        self._said: set[str] = set()
        try:
            super().__init__(("127.0.0.1", port), _Connection)
        except OSError as error:
            hint = "choose another port with --port"
            raise KubeError(f"port {port} on this machine can't be used: {error.strerror}", hint=hint) from None

    @property
    def port(self) -> int:
        """Local port of the server."""
        return int(self.server_address[1])

    def trouble(self, text: str) -> None:
        """Reports each cause of a broken connection once."""
        if text not in self._said:
            self._said.add(text)
            self.say(text)

    def connect(self) -> websocket.WebSocket:
        """Opens a stream to the pod's port. Raises StreamError."""
        path = self.kube.path("v1", "pods", self.pod, sub="portforward") + f"?ports={self.pod_port}"
        return opened(self.kube.host, path, self.kube.stream_headers(), self.kube.configuration, PROTOCOL)


class _Connection(socketserver.BaseRequestHandler):
    server: Forward

    def handle(self) -> None:
        """Forwards one local connection until either side closes it."""
        try:
            way = self.server.connect()
        except StreamError as error:
            self.server.trouble(f"the pod's port can't be reached: {error}")
            return
        try:
            self._pump(way)
        except (websocket.WebSocketException, OSError) as error:
            self.server.trouble(f"a connection to the pod broke: {error}")
        finally:
            way.shutdown()

    def _pump(self, way: websocket.WebSocket) -> None:
        raw, here = way.sock, self.request
        if raw is None:
            return
        skipped, errors = {DATA: PORT_BYTES, ERROR: PORT_BYTES}, b""
        while True:
            # select does not see bytes that TLS has already read.
            held = isinstance(raw, ssl.SSLSocket) and raw.pending() > 0
            ready = [raw] if held else select.select([raw, here], [], [], PING_S)[0]
            if not ready:
                way.ping()
            if here in ready:
                piece = here.recv(CHUNK)
                if not piece:
                    return
                way.send_binary(bytes([DATA]) + piece)
            if raw in ready:
                frame = way.recv_frame()
                if frame.opcode == websocket.ABNF.OPCODE_CLOSE:
                    if errors:
                        self.server.trouble(errors.decode(errors="replace"))
                    return
                if frame.opcode == websocket.ABNF.OPCODE_PING:
                    way.pong(frame.data)
                if frame.opcode not in (websocket.ABNF.OPCODE_BINARY, websocket.ABNF.OPCODE_TEXT) or not frame.data:
                    continue
                channel, data = frame.data[0], frame.data[1:]
                begin = min(skipped.get(channel, 0), len(data))
                if channel in skipped:
                    skipped[channel] -= begin
                if channel == DATA:
                    here.sendall(data[begin:])
                elif channel == ERROR:
                    errors += data[begin:]
