"""etcd and kube-apiserver in a temporary folder, with everything that needs no node: RBAC, quotas, admission, CRDs."""

import base64
import http.client
import json
import os
import shutil
import ssl
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import yaml

from trainyard.errors import TrainyardError
from trainyard.shell import run
from trainyard_dev import tools
from trainyard_dev.apiserver.client import Client
from trainyard_dev.apiserver.processes import Server, free_ports
from trainyard_dev.tools.build import KUBERNETES
from trainyard_dev.versions import load

START_S = 60.0
HOST = "127.0.0.1"
# kubeadm puts the advertised address into its certificates and refuses loopback; nothing connects to this one.
ADVERTISED = "192.0.2.1"
AUDIT_LOG = "audit.log"
# Both collect garbage less often than Go does by default: a quarter less processor time for twice the memory.
LESS_GARBAGE = {"GOGC": "400"}
# Audit policy: all writes, refused ones and dry runs included, without the objects themselves.
AUDIT = {
    "apiVersion": "audit.k8s.io/v1",
    "kind": "Policy",
    "omitStages": ["RequestReceived"],
    "rules": [{"level": "Metadata", "verbs": ["create", "update", "patch", "delete"]}, {"level": "None"}],
}


class ApiServer(Client):
    """A running API server: the client's methods, and kubectl, as the administrator or any other user."""

    def __init__(self, folder: Path, kubeconfig: Path) -> None:
        self.folder, self.kubeconfig = folder, kubeconfig
        self.programs: dict[str, int] = {}  # name of each program of the server -> its process
        config = yaml.safe_load(kubeconfig.read_text())
        self._host = config["clusters"][0]["cluster"]["server"].removeprefix("https://")
        self._tls = ssl.create_default_context(cafile=str(folder / "pki" / "ca.crt"))
        self._tls.load_cert_chain(folder / "admin.pem")
        super().__init__(self._host, self._tls)

    def connection(self) -> Client:
        """Opens another connection as the administrator, for another thread."""
        return Client(self._host, self._tls)

    def watch(self, path: str) -> Iterator[dict[str, Any]]:
        """Yields every change of the objects at `path`, existing ones first; ends when the server ends it."""
        connection = http.client.HTTPSConnection(self._host, context=self._tls, timeout=3600)
        with suppress(OSError, http.client.HTTPException, ValueError):
            connection.request("GET", f"{path}{'&' if '?' in path else '?'}watch=1&timeoutSeconds=3500")
            for line in connection.getresponse():
                yield json.loads(line)
        connection.close()

    def kubectl(
        self,
        args: Sequence[str | Path],
        as_user: str = "",
        as_groups: Sequence[str] = (),
        input: str | None = None,
        check: bool = True,
    ) -> subprocess.CompletedProcess[str]:
        """Runs one kubectl command, as the administrator or another user."""
        who = [f"--as={as_user}"] if as_user else []
        who += [f"--as-group={group}" for group in as_groups]
        return run(
            [tools.binary("kubectl"), "--kubeconfig", self.kubeconfig, *who, *args],
            input=input, check=check, timeout=60, env={"HOME": str(self.folder)},
        )  # fmt: skip

    def audit_log(self) -> list[dict[str, Any]]:
        """Every write so far, including refused ones and dry runs, with the annotations of admission."""
        return [json.loads(line) for line in (self.folder / AUDIT_LOG).read_text().splitlines()]

    @contextmanager
    def controllers(self, names: Sequence[str]) -> Iterator[None]:
        """Runs these controllers of kube-controller-manager, by name, while the body runs."""
        server = Server(
            [
                tools.binary("kube-controller-manager"), "--kubeconfig", self.kubeconfig, "--leader-elect=false",
                f"--controllers={','.join(names)}", "--secure-port=0",
            ],
            self.folder / "kube-controller-manager.log",
        )  # fmt: skip
        try:
            yield
        finally:
            server.stop()


@contextmanager
def running(
    *,
    audit: bool = True,
    kubernetes: str | None = None,
    features: Sequence[str] = (),
    privileged: bool = False,
    authentication: Path | None = None,
) -> Iterator[ApiServer]:
    """Starts both servers on free ports and ends them afterwards; nothing remains.

    Args:
        audit: write the log of writes; benchmarks omit it, since it costs time.
        kubernetes: version of the API server, such as `1.35`, of those that versions.yaml has; left out: that of
            $TRAINYARD_KUBERNETES, else the cluster's. kubectl and the controllers are always the cluster's.
        features: feature gates to enable besides those that are on by default.
        privileged: allow privileged pods, as kubeadm's servers do.
        authentication: file of the issuers whose tokens it accepts; a change takes effect without a restart.

    Raises:
        TrainyardError: one of them doesn't start, with the end of its log, or no tool set builds that version.
    """
    program = tools.binary("kube-apiserver", os.environ.get(KUBERNETES, "") if kubernetes is None else kubernetes)
    folder = Path(tempfile.mkdtemp(prefix="trainyard-api-"))
    started: list[Server] = []
    try:
        etcd_port, peer_port, api_port = free_ports(3)
        store = f"http://{HOST}:{etcd_port}"
        etcd = _etcd(folder, store, f"http://{HOST}:{peer_port}")
        started.append(Server(etcd, folder / "etcd.log", LESS_GARBAGE))
        server = ApiServer(folder, _certificates(folder, api_port))
        api = _kube_apiserver(program, folder, store, api_port, audit, features, privileged)
        api += [f"--authentication-config={authentication}"] if authentication else []
        started.append(Server(api, folder / "kube-apiserver.log", LESS_GARBAGE))
        started[-1].wait(lambda: _ready(server), START_S)
        server.programs = {process.name: process.pid for process in started}
        yield server
    finally:
        for process in reversed(started):
            process.stop()
        shutil.rmtree(folder, ignore_errors=True)


def _ready(server: ApiServer) -> bool:
    with suppress(TrainyardError):
        return server.call("GET", "/readyz").status == 200
    return False


def _etcd(folder: Path, store: str, peers: str) -> list[str | Path]:
    return [
        tools.binary("etcd"), "--name=one", f"--data-dir={folder / 'etcd'}", f"--listen-client-urls={store}",
        f"--advertise-client-urls={store}", f"--listen-peer-urls={peers}", f"--initial-advertise-peer-urls={peers}",
        f"--initial-cluster=one={peers}", "--unsafe-no-fsync", "--log-level=error",
    ]  # fmt: skip


def _kube_apiserver(
    program: Path, folder: Path, store: str, port: int, audit: bool, features: Sequence[str], privileged: bool
) -> list[str | Path]:
    pki = folder / "pki"
    gates = [f"--feature-gates={','.join(f'{one}=true' for one in features)}"] if features else []
    log = [f"--audit-policy-file={folder / 'audit.yaml'}", f"--audit-log-path={folder / AUDIT_LOG}"] if audit else []
    return [
        program, f"--etcd-servers={store}", f"--bind-address={HOST}", f"--secure-port={port}",
        f"--advertise-address={ADVERTISED}", "--endpoint-reconciler-type=none",
        "--service-cluster-ip-range=10.96.0.0/16",
        f"--tls-cert-file={pki / 'apiserver.crt'}", f"--tls-private-key-file={pki / 'apiserver.key'}",
        f"--client-ca-file={pki / 'ca.crt'}", "--authorization-mode=RBAC", "--anonymous-auth=false",
        "--service-account-issuer=https://kubernetes.default.svc", f"--service-account-key-file={pki / 'sa.pub'}",
        f"--service-account-signing-key-file={pki / 'sa.key'}", "--enable-priority-and-fairness=false",
        # With priority and fairness off these two are the only bounds, and clients wait a second after each refusal.
        "--max-requests-inflight=3000", "--max-mutating-requests-inflight=1000",
        "--profiling=false", f"--allow-privileged={str(privileged).lower()}", *log, *gates, "--v=0",
    ]  # fmt: skip


def _certificates(folder: Path, port: int) -> Path:
    """Writes the certificates and the administrator's kubeconfig, whose path it returns."""
    cluster = {
        "apiVersion": "kubeadm.k8s.io/v1beta4",
        "kind": "ClusterConfiguration",
        "kubernetesVersion": f"v{load().kubernetes}",
        "certificatesDir": str(folder / "pki"),
        "encryptionAlgorithm": "ECDSA-P256",
        "apiServer": {"certSANs": [HOST]},
    }
    init = {
        "apiVersion": "kubeadm.k8s.io/v1beta4",
        "kind": "InitConfiguration",
        "localAPIEndpoint": {"advertiseAddress": ADVERTISED, "bindPort": port},
        "nodeRegistration": {"name": "none"},
    }
    (folder / "audit.yaml").write_text(yaml.safe_dump(AUDIT))
    config = folder / "kubeadm.yaml"
    config.write_text(yaml.safe_dump_all([cluster, init]))
    kubeadm = tools.binary("kubeadm")
    for phase in ("ca", "apiserver", "sa"):
        run([kubeadm, "init", "phase", "certs", phase, "--config", config])
    run([kubeadm, "init", "phase", "kubeconfig", "super-admin", "--config", config, "--kubeconfig-dir", folder])
    kubeconfig = folder / "super-admin.conf"
    text = kubeconfig.read_text().replace(ADVERTISED, HOST)
    kubeconfig.write_text(text)
    user = yaml.safe_load(text)["users"][0]["user"]
    admin = folder / "admin.pem"
    admin.touch(mode=0o600)
    admin.write_bytes(b"".join(base64.b64decode(user[f"client-{part}-data"]) for part in ("certificate", "key")))
    return kubeconfig
