"""The real training-operator takes its certificate from a namespace of its own, and needs no other right to Secrets."""

import base64
import shutil
import socket
import ssl
import subprocess
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from hook_api import HookApi

from trainyard_agent.install import webhook_cert
from trainyard_dev import tools
from trainyard_dev.apiserver import ApiServer
from trainyard_dev.apiserver.processes import Server, free_ports

SYSTEM, ACCOUNT = "trainyard-system", "trainyard-training-operator"
PLACE = webhook_cert.Place(f"{SYSTEM}-webhook", "training-operator-webhook-cert")
NAMES = [f"{ACCOUNT}.{SYSTEM}.svc", f"{ACCOUNT}.{PLACE.namespace}.svc"]
CONFIGURATION = "validator.training-operator.kubeflow.org"
START_S = 120.0  # the machine may be busy
ISOLATED = ["unshare", "--mount", "--", "sh", "-c", 'mount --bind "$0" /tmp && exec "$@"']

pytestmark = pytest.mark.skipif(not shutil.which("openssl"), reason="openssl is not installed")


@pytest.fixture
def own_tmp(tmp_path: Path) -> Path:
    """A folder that the operator sees as /tmp: the place of its certificate is fixed there."""
    tried = subprocess.run([*ISOLATED, str(tmp_path), "true"], capture_output=True, text=True, check=False)
    if tried.returncode:
        pytest.skip(f"a process can't have a /tmp of its own here: {tried.stderr.strip()}")
    return tmp_path


@pytest.fixture
def configuration(server: ApiServer) -> Iterator[dict[str, Any]]:
    """The operator's webhook configuration, of which nothing is asked while other tests write jobs."""
    hook = {
        "name": "validator.pytorchjob.training-operator.kubeflow.org", "admissionReviewVersions": ["v1"],
        "sideEffects": "None", "failurePolicy": "Ignore",
        "clientConfig": {"service": {"name": ACCOUNT, "namespace": SYSTEM, "port": 443}},
        "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "none"}},
        "rules": [{"apiGroups": ["kubeflow.org"], "apiVersions": ["v1"], "operations": ["CREATE"],
                   "resources": ["pytorchjobs"]}],
    }  # fmt: skip
    obj = {"apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration",
           "metadata": {"name": CONFIGURATION}, "webhooks": [hook]}  # fmt: skip
    made = server.create(obj)
    assert made.ok, made.message
    yield obj
    server.call("DELETE", f"{server.path(obj)}/{CONFIGURATION}")


def kubeconfig(server: ApiServer, folder: Path) -> None:
    """A kubeconfig with the operator's own token."""
    path = f"/api/v1/namespaces/{SYSTEM}/serviceaccounts/{ACCOUNT}/token"
    request = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {"expirationSeconds": 3600}}
    token = server.call("POST", path, request)
    assert token.ok, token.message
    config = yaml.safe_load(server.kubeconfig.read_text())
    config["users"][0]["user"] = {"token": token.body["status"]["token"]}
    (folder / "kubeconfig").write_text(yaml.safe_dump(config))


def certificate(server: ApiServer) -> dict[str, bytes]:
    found = server.call("GET", f"/api/v1/namespaces/{PLACE.namespace}/secrets/{PLACE.secret}").body
    return {name: base64.b64decode(value) for name, value in (found.get("data") or {}).items()}


def test_a_certificate_is_kept_and_laid_down(server: ApiServer, tmp_path: Path) -> None:
    api = HookApi(server, ACCOUNT)
    for _ in range(2):  # the second time it is taken as it is
        assert webhook_cert.run(api, PLACE, NAMES, "training-operator-ca", tmp_path) == 0
        held = certificate(server)
        assert webhook_cert.good(held, NAMES)
        assert {file.name: file.read_bytes() for file in tmp_path.iterdir()} == {
            name: held[name] for name in ("ca.crt", "tls.crt", "tls.key")
        }


@pytest.mark.long  # an operator is compiled for it
def test_the_operator_starts_with_it(server: ApiServer, own_tmp: Path, configuration: dict[str, Any]) -> None:
    certs = own_tmp / "k8s-webhook-server" / "serving-certs"
    certs.mkdir(parents=True)
    webhook_cert.run(HookApi(server, ACCOUNT), PLACE, NAMES, "training-operator-ca", certs)
    before = certificate(server)
    kubeconfig(server, own_tmp)
    webhook, probes = free_ports(2)
    operator = tools.binary("training-operator")
    log = own_tmp.parent / "training-operator.log"
    process = Server(
        [*ISOLATED, own_tmp, operator, "--enable-scheme=pytorchjob", "--gang-scheduler-name=volcano",
         "--metrics-bind-address=0", f"--health-probe-bind-address=127.0.0.1:{probes}",
         f"--webhook-server-port={webhook}", f"--webhook-service-name={ACCOUNT}",
         f"--webhook-secret-name={PLACE.secret}"],
        log, {"KUBECONFIG": "/tmp/kubeconfig", "MY_POD_NAMESPACE": PLACE.namespace, "TMPDIR": "/tmp"},
    )  # fmt: skip
    try:
        process.wait(lambda: answers(f"http://127.0.0.1:{probes}/readyz"), START_S)
        trust = ssl.create_default_context(cadata=before["ca.crt"].decode())
        with socket.create_connection(("127.0.0.1", webhook), timeout=10) as raw:
            trust.wrap_socket(raw, server_hostname=NAMES[0]).close()  # as the API server calls it
    finally:
        process.stop()
    assert certificate(server) == before, "the operator took the certificate for a bad one and made another"
    held = server.call("GET", f"{server.path(configuration)}/{CONFIGURATION}").body
    assert base64.b64decode(held["webhooks"][0]["clientConfig"]["caBundle"]) == before["ca.crt"]
    assert [line for line in log.read_text().splitlines() if "forbidden" in line and "secrets" in line] == []


def answers(url: str) -> bool:
    try:
        with urllib.request.urlopen(url, timeout=2) as answer:
            return answer.status == 200
    except (urllib.error.URLError, OSError):
        return False
