"""An admission webhook next to training-operator: secures the init container that it adds to MPI launchers.

training-operator appends a container `kubectl-delivery` to the launcher of an MPIJob without a security
context and without a way to set one, so a namespace at Pod Security's level "restricted" refuses the launcher.
"""

from __future__ import annotations

import base64
import json
import ssl
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from trainyard_agent.api import Api, ApiError
from trainyard_agent.say import PlatformError, say

CONTAINER = "kubectl-delivery"
CLOSED = {
    "allowPrivilegeEscalation": False,
    "capabilities": {"drop": ["ALL"]},
    "seccompProfile": {"type": "RuntimeDefault"},
}
NO_GPU = {"name": "NVIDIA_VISIBLE_DEVICES", "value": "void"}
MANAGER = "trainyard-launcher"
PATH = "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations/"
LOOK_SECONDS = 30.0


def patch(pod: dict[str, Any]) -> list[dict[str, Any]]:
    """JSON patch that makes the init container meet "restricted" and the rule on GPUs; [] if it does already."""
    changes = []
    spec = pod.get("spec", {})
    # The image sets its own user; a pod that is meant to run as root keeps that user.
    user = {} if (spec.get("securityContext") or {}).get("runAsUser") == 0 else {"runAsNonRoot": True}
    for index, container in enumerate(spec.get("initContainers") or []):
        held = container.get("securityContext") or {}
        wanted = {**CLOSED, **user, **held}
        if container.get("name") != CONTAINER:
            continue
        if wanted != held:
            changes.append({"op": "add", "path": f"/spec/initContainers/{index}/securityContext", "value": wanted})
        env = container.get("env") or []
        if not any(entry.get("name") == NO_GPU["name"] for entry in env):
            changes.append({"op": "add", "path": f"/spec/initContainers/{index}/env", "value": [*env, NO_GPU]})
    return changes


def review(request: dict[str, Any]) -> dict[str, Any]:
    """The answer to an AdmissionReview: always allowed, with a patch if one is needed."""
    asked = request["request"]
    response: dict[str, Any] = {"uid": asked["uid"], "allowed": True}
    changes = patch(asked.get("object") or {})
    if changes:
        response |= {"patchType": "JSONPatch", "patch": base64.b64encode(json.dumps(changes).encode()).decode()}
    return {"apiVersion": request["apiVersion"], "kind": "AdmissionReview", "response": response}


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    timeout = 15

    def do_GET(self) -> None:
        """Answers probes."""
        self._answer(200, b"ok")

    def do_POST(self) -> None:
        """Answers an AdmissionReview."""
        try:
            body = self.rfile.read(min(int(self.headers.get("Content-Length", "0")), 8 * 1024 * 1024))
            answer = review(json.loads(body))
        except (ValueError, KeyError, TypeError) as error:
            self._answer(400, str(error).encode())
            return
        self._answer(200, json.dumps(answer).encode())

    def _answer(self, status: int, body: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Logs nothing: one line per probe would be too much."""


class _Server(ThreadingHTTPServer):
    """HTTPS server. The handshake runs in each connection's thread, so one silent client can't block the others."""

    daemon_threads = True

    def __init__(self, port: int, tls: ssl.SSLContext) -> None:
        super().__init__(("", port), _Handler)
        self.tls = tls

    def finish_request(self, request: Any, client_address: Any) -> None:
        request.settimeout(15)
        try:
            with self.tls.wrap_socket(request, server_side=True) as secured:
                super().finish_request(secured, client_address)
        except OSError:
            return


def trust(api: Api, configuration: str, ca: bytes) -> bool:
    """Write our CA into the webhook configuration; True when it had to be changed. Raises ApiError."""
    held = api.get(PATH + configuration)
    bundle = base64.b64encode(ca).decode()
    if all(hook["clientConfig"].get("caBundle") == bundle for hook in held["webhooks"]):
        return False
    for hook in held["webhooks"]:
        hook["clientConfig"]["caBundle"] = bundle
    change = {"metadata": {"resourceVersion": held["metadata"]["resourceVersion"]}, "webhooks": held["webhooks"]}
    api.merge(PATH + configuration, change, manager=MANAGER)
    return True


def run(certs: str, port: int, configuration: str) -> int:
    """Serve forever; the certificate and the CA follow the mounted Secret. Raises PlatformError when there is none."""
    folder, api = Path(certs), Api()
    files = [folder / name for name in ("ca.crt", "tls.crt", "tls.key")]
    for _ in range(240):
        if all(file.exists() and file.stat().st_size for file in files):
            break
        time.sleep(0.5)
    else:
        raise PlatformError(f"no certificate in {certs} after two minutes")
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.minimum_version = ssl.TLSVersion.TLSv1_2
    tls.load_cert_chain(files[1], files[2])
    server = _Server(port, tls)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    say(f"serving on port {port}")
    seen = b""
    while True:
        try:
            chain = b"".join(file.read_bytes() for file in files)
            if chain != seen:
                tls.load_cert_chain(files[1], files[2])
                seen = chain
            if trust(api, configuration, files[0].read_bytes()):
                say(f"wrote the CA into {configuration}")
            pause = LOOK_SECONDS
        except (ApiError, OSError, KeyError) as error:
            say(f"not yet: {error}")
            pause = 2.0
        time.sleep(pause)
