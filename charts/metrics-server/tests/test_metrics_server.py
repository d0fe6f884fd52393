"""Only the API server may query metrics-server."""

from __future__ import annotations

import base64
from pathlib import Path

from found import one

from rendering import Rendering
from trainyard.shell import run


def test_nobody_else_can_answer_for_metrics(render: Rendering, tmp_path: Path) -> None:
    """The API server checks metrics-server's certificate against the release's own authority."""
    objects = render(sets=["metrics-server.enabled=true"])
    service = one(objects, "APIService", "v1beta1.metrics.k8s.io")["spec"]
    pair = one(objects, "Secret", "trainyard-metrics-server-tls")["stringData"]
    assert "insecureSkipTLSVerify" not in service
    assert base64.b64decode(service["caBundle"]).decode() == pair["ca.crt"]
    for key in ("tls.crt", "ca.crt"):
        (tmp_path / key).write_text(pair[key])
    host = f"{service['service']['name']}.{service['service']['namespace']}.svc"
    run(["openssl", "verify", "-CAfile", tmp_path / "ca.crt", "-verify_hostname", host, tmp_path / "tls.crt"])
