"""Volcano's own admission for a test's API server: its webhooks set defaults in Jobs and refuse bad ones."""

import base64
import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

from trainyard_dev import tools
from trainyard_dev.apiserver import ApiServer
from trainyard_dev.apiserver.processes import Server, free_ports

HOST = "127.0.0.1"
START_S = 60.0
PATHS = {"/jobs/mutate": "MutatingWebhookConfiguration", "/jobs/validate": "ValidatingWebhookConfiguration"}
PREFIX = "volcano-admission-service"
QUEUE = {"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "Queue"}


@contextmanager
def admission(server: ApiServer) -> Iterator[None]:
    """Runs the webhooks while the body runs, and marks every queue as open, as Volcano's controllers would."""
    made = []
    (port,) = free_ports(1)
    for path, kind in PATHS.items():
        obj = _configuration(server, path, kind, port)
        answer = server.create(obj)
        assert answer.ok, answer.message
        made.append(f"{server.path(obj)}/{obj['metadata']['name']}")
    for queue in server.call("GET", server.path(QUEUE)).body["items"]:
        state = {**(queue.get("status") or {}), "state": "Open"}
        server.replace(QUEUE | queue | {"status": state}, sub="status")
    pki = server.folder / "pki"
    process = Server(
        [
            tools.binary("vc-webhook-manager"), "--kubeconfig", server.kubeconfig, f"--port={port}",
            f"--webhook-url=https://{HOST}:{port}", f"--listen-address={HOST}",
            f"--enabled-admission={','.join(PATHS)}", f"--ca-cert-file={pki / 'ca.crt'}",
            f"--tls-cert-file={pki / 'apiserver.crt'}", f"--tls-private-key-file={pki / 'apiserver.key'}",
        ],
        server.folder / "vc-webhook-manager.log",
    )  # fmt: skip
    try:
        process.wait(lambda: _listens(port), START_S)
        yield
    finally:
        process.stop()
        for path in made:
            server.call("DELETE", path)


def _configuration(server: ApiServer, path: str, kind: str, port: int) -> dict[str, Any]:
    authority = base64.b64encode((server.folder / "pki" / "ca.crt").read_bytes()).decode()
    operations = ["CREATE"] if "mutate" in path else ["CREATE", "UPDATE"]
    hook = {
        "name": f"{path.rpartition('/')[2]}job.volcano.sh",
        "admissionReviewVersions": ["v1"],
        "sideEffects": "NoneOnDryRun",
        "failurePolicy": "Fail",
        "timeoutSeconds": 10,
        "clientConfig": {"url": f"https://{HOST}:{port}{path}", "caBundle": authority},
        "rules": [
            {"apiGroups": ["batch.volcano.sh"], "apiVersions": ["v1alpha1"], "resources": ["jobs"],
             "operations": operations}
        ],
    }  # fmt: skip
    meta = {"name": PREFIX + path.replace("/", "-")}
    return {"apiVersion": "admissionregistration.k8s.io/v1", "kind": kind, "metadata": meta, "webhooks": [hook]}


def _listens(port: int) -> bool:
    with suppress(OSError), socket.create_connection((HOST, port), timeout=1):
        return True
    return False
