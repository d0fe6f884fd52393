"""The service behind kfp.Client on the platform of these tests, and people with tokens of their own."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import uvicorn
from kfp.client import Client
from kubernetes.client import Configuration
from pipeline_harness import PipelineHarness

from kfp_api.app import build
from kfp_api.artifacts import Artifacts
from kfp_api.call import Service
from kfp_api.caller import Cluster
from trainyard_dev.apiserver import ApiServer
from trainyard_dev.apiserver.processes import free_ports
from trainyard_dev.bench import harness as bench

PEOPLE = "people"


@dataclass
class KfpService:
    """The service at `url`, and everybody's token."""

    harness: PipelineHarness
    url: str
    folder: Path
    tokens: dict[str, str]

    def client(self, person: str, **more: Any) -> Client:
        """kfp's own client, as a person."""
        return Client(host=self.url, existing_token=self.tokens[person], **more)


def cluster(server: ApiServer, teams: Any) -> Cluster:
    """The API server as the service's pod reaches it: its address and authority."""
    configuration = Configuration()
    configuration.host, configuration.ssl_ca_cert = f"https://{server._host}", str(server.folder / "pki" / "ca.crt")
    return Cluster(configuration, teams)


@contextmanager
def running(harness: PipelineHarness, folder: Path, members: dict[str, tuple[str, ...]]) -> Iterator[KfpService]:
    """Runs the service for the time of the body. `members`: people and their teams."""
    tokens = {person: _person(harness.server, person, teams) for person, teams in members.items()}
    service = Service(lambda: harness.contract, Artifacts(harness.store.client(), "runs"))
    app = build(service, cluster(harness.server, lambda: list(harness.contract.teams)))
    port = free_ports(1)[0]
    server = uvicorn.Server(uvicorn.Config(app, host="127.0.0.1", port=port, log_level="error"))
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    while not server.started:
        time.sleep(0.05)
    try:
        yield KfpService(harness, f"http://127.0.0.1:{port}", folder, tokens)
    finally:
        server.should_exit = True
        thread.join(10)


def _person(server: ApiServer, person: str, teams: tuple[str, ...]) -> str:
    """Binds an account to all that the members of these teams may do; returns its token."""
    for obj in ({"kind": "Namespace", "metadata": {"name": PEOPLE}},
                {"kind": "ServiceAccount", "metadata": {"name": person, "namespace": PEOPLE}}):  # fmt: skip
        server.create({"apiVersion": "v1", **obj})
    own = {f"{team}-members" for team in teams}
    for kind in ("RoleBinding", "ClusterRoleBinding"):
        for one in server.call("GET", f"/apis/rbac.authorization.k8s.io/v1/{kind.lower()}s").body["items"]:
            if own & {subject["name"] for subject in one.get("subjects") or []}:
                meta = {"name": f"{one['metadata']['name']}-{person}"}
                meta |= {"namespace": one["metadata"]["namespace"]} if "namespace" in one["metadata"] else {}
                account = {"kind": "ServiceAccount", "name": person, "namespace": PEOPLE}
                made = {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": kind, "metadata": meta,
                        "roleRef": one["roleRef"], "subjects": [account]}  # fmt: skip
                answer = server.create(made)
                assert answer.ok or answer.status == 409, answer.message
    return bench.token(server, PEOPLE, person, f"{person} has no token")
