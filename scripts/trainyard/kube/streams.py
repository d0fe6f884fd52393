"""The standard streams of a program in a pod, over one WebSocket: binary, in both directions at once, in one thread.

Uses v5.channel.k8s.io, which can close standard input; the API server supports it since Kubernetes 1.30.
"""

import io
import json
import select
import ssl
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import IO, Any
from urllib.parse import urlparse

import websocket

PROTOCOL = "v5.channel.k8s.io"
STDIN, STDOUT, STDERR, STATUS, CLOSE = 0, 1, 2, 3, 255
CHUNK = 32 * 1024  # the API server accepts frames of any size; the kubelet copies in pieces of this size
CONNECT_S, PING_S = 15.0, 20.0
ERRORS = 64 * 1024  # how much of the end of standard error is kept


@dataclass(frozen=True)
class Done:
    """Result of a program. `stdout` is empty if the caller passed a file for it."""

    code: int
    stdout: bytes
    stderr: str


class StreamError(ConnectionError):
    """The stream could not be opened, or broke; `status` is the HTTP status, 0 once the stream was open."""

    def __init__(self, what: str, status: int = 0) -> None:
        super().__init__(what)
        self.status = status


class Exec:
    """One run of a program in a pod."""

    def __init__(self, host: str, path: str, headers: Mapping[str, str], configuration: Any) -> None:
        self._host, self._path, self._headers, self._configuration = host, path, headers, configuration
        self._socket: websocket.WebSocket

    def run(self, stdin: IO[bytes] | None, stdout: IO[bytes] | None, timeout_s: float | None) -> Done:
        """Runs the program until it ends. Raises StreamError."""
        kept = io.BytesIO()
        errors = bytearray()
        self._connect()
        try:
            return self._pump(stdin, stdout or kept, kept, errors, timeout_s)
        except (websocket.WebSocketException, OSError) as error:
            if isinstance(error, StreamError):
                raise
            tail = errors.decode(errors="replace").strip()
            raise StreamError(f"the connection to the pod broke: {tail or error}") from None
        finally:
            self._socket.shutdown()

    def _connect(self) -> None:
        self._socket = opened(self._host, self._path, self._headers, self._configuration, PROTOCOL)

    def _pump(
        self, stdin: IO[bytes] | None, stdout: IO[bytes], kept: io.BytesIO, errors: bytearray, timeout_s: float | None
    ) -> Done:
        """Reads when data is available and writes when there is room, so that the two sides never block each other."""
        raw = self._socket.sock
        if raw is None:
            raise StreamError("the connection to the pod was closed before the program ended")
        raw.setblocking(False)
        waiting: bytes | memoryview = b""
        silent = 0.0
        while True:
            while frame := self._frame():
                silent = 0.0
                opcode, data = frame
                if opcode == websocket.ABNF.OPCODE_CLOSE:
                    raise StreamError("the connection to the pod was closed before the program ended")
                if opcode == websocket.ABNF.OPCODE_PING:
                    waiting = bytes(waiting) + _frame(data, websocket.ABNF.OPCODE_PONG)
                elif opcode in (websocket.ABNF.OPCODE_BINARY, websocket.ABNF.OPCODE_TEXT) and data:
                    if data[0] == STATUS:
                        return _done(data[1:], kept.getvalue(), errors.decode(errors="replace"))
                    _keep(data[0], data[1:], stdout, errors)
            if not waiting and stdin:
                if piece := stdin.read(CHUNK):
                    waiting = _frame(bytes([STDIN]) + piece)
                else:
                    waiting, stdin = _frame(bytes([CLOSE, STDIN])), None
            if waiting and (sent := _sent(raw, waiting)):
                waiting, silent = memoryview(waiting)[sent:], 0.0
                continue
            ready = select.select([raw], [raw] if waiting else [], [], PING_S)
            if not any(ready):
                silent += PING_S
                if timeout_s is not None and silent >= timeout_s:
                    raise StreamError(f"the program in the pod was silent for {silent:.0f} s")
                waiting = bytes(waiting) + _frame(b"", websocket.ABNF.OPCODE_PING)

    def _frame(self) -> tuple[int, bytes] | None:
        """The next whole frame, or None while it is incomplete; the part received so far is kept."""
        try:
            frame = self._socket.recv_frame()
        except (BlockingIOError, ssl.SSLWantReadError, ssl.SSLWantWriteError):
            return None
        return frame.opcode, frame.data


def opened(host: str, path: str, headers: Mapping[str, str], configuration: Any, protocol: str) -> websocket.WebSocket:
    """Opens a WebSocket to the API server with the subprotocol `protocol`. Raises StreamError."""
    url = urlparse(host)
    secure = url.scheme == "https"
    made = websocket.WebSocket(sslopt=_tls(configuration) if secure else {}, skip_utf8_validation=True)
    try:
        made.connect(
            f"{'wss' if secure else 'ws'}://{url.netloc}{url.path}{path}",
            header=[f"{name}: {value}" for name, value in _pairs(headers)],
            subprotocols=[protocol],
            timeout=CONNECT_S,
            suppress_origin=True,
            **_proxy(configuration.proxy),
        )
    except websocket.WebSocketBadStatusException as error:
        raise StreamError(_message(error), error.status_code) from None
    except (websocket.WebSocketException, OSError) as error:
        raise StreamError(f"no connection to the pod: {error}") from None
    if made.getsubprotocol() != protocol:
        made.shutdown()
        raise StreamError(f"the API server does not speak {protocol}: it is older than Kubernetes 1.30")
    return made


def _frame(data: bytes, opcode: int = websocket.ABNF.OPCODE_BINARY) -> bytes:
    return websocket.ABNF.create_frame(data, opcode).format()


def _keep(channel: int, payload: bytes, stdout: IO[bytes], errors: bytearray) -> None:
    """Writes the program's output to `stdout`, and keeps the end of its errors."""
    if channel == STDOUT:
        stdout.write(payload)
    elif channel == STDERR:
        errors += payload
        del errors[:-ERRORS]


def _sent(raw: Any, waiting: bytes | memoryview) -> int:
    """Sends as many bytes as the socket accepts, and returns their number."""
    try:
        return int(raw.send(waiting))
    except (BlockingIOError, ssl.SSLWantReadError, ssl.SSLWantWriteError):
        return 0


def _done(status: bytes, stdout: bytes, stderr: str) -> Done:
    """Result of the program, from the stream's last message. Raises StreamError if the program could not be started."""
    try:
        answer = json.loads(status)
    except ValueError:
        raise StreamError(f"the pod's last message can't be read: {status[:200]!r}") from None
    if answer.get("status") == "Success":
        return Done(0, stdout, stderr)
    causes = (answer.get("details") or {}).get("causes") or []
    for cause in causes:
        if cause.get("reason") == "ExitCode":
            return Done(int(cause.get("message", "1")), stdout, stderr)
    raise StreamError(str(answer.get("message") or "the program could not be started"), int(answer.get("code") or 500))


def _message(error: websocket.WebSocketBadStatusException) -> str:
    try:
        return str(json.loads(error.resp_body or b"")["message"])
    except (ValueError, KeyError, TypeError):
        return f"the API server refused the stream with code {error.status_code}"


def _pairs(headers: Any) -> Iterable[tuple[str, str]]:
    return headers.iteritems() if hasattr(headers, "iteritems") else headers.items()


def _proxy(chosen: str | None) -> dict[str, Any]:
    """Proxy options that match those of other requests, regardless of the environment."""
    if not chosen:
        return {"http_no_proxy": ["*"]}
    url = urlparse(chosen)
    auth = {"http_proxy_auth": (url.username, url.password or "")} if url.username else {}
    return {"http_proxy_host": url.hostname, "http_proxy_port": url.port, **auth}


def _tls(configuration: Any) -> dict[str, Any]:
    context = ssl.create_default_context(cafile=configuration.ssl_ca_cert or None)
    if not configuration.verify_ssl:
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    if configuration.cert_file:
        context.load_cert_chain(configuration.cert_file, configuration.key_file)
    named = {"server_hostname": configuration.tls_server_name} if configuration.tls_server_name else {}
    return {"context": context, **named}
