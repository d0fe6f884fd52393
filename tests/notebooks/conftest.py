"""Notebooks on a real API server: hub and proxy as the chart configures them, an issuer, and a kubelet."""

import json
import os
import signal
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import issuer as issuers
import nodes
import programs
import pytest
import yaml
from browsing import Person

from trainyard.paths import ROOT
from trainyard_dev.apiserver import ApiServer, running
from trainyard_dev.apiserver.install import install
from trainyard_dev.apiserver.processes import Server, free_ports
from trainyard_dev.chart import package

HUB, SPACE = "trainyard-notebook-hub", "trainyard-system-notebooks"
TEAMS = ROOT / "tests" / "policies" / "teams.yaml"
START_S, STOP_S = 300.0, 30.0
CONFIG = """
from notebook_hub.config import configure
c = get_config()
configure(c)
c.JupyterHub.bind_url = "http://127.0.0.1:{public}"
c.JupyterHub.hub_bind_url = "http://127.0.0.1:{hub}"
c.JupyterHub.log_level = "DEBUG"
c.TeamSpawner.poll_interval = 2
"""


class Site:
    """The hub's address for people and for notebooks, and what stands around it."""

    def __init__(self, server: ApiServer, issuer: issuers.Issuer, folder: Path, objects: list[dict[str, Any]]) -> None:
        self.server, self.issuer, self.folder, self.objects = server, issuer, folder, objects
        self.public, self.hub_port, self.api_port = free_ports(3)
        self.url = f"http://127.0.0.1:{self.public}"
        self.api = f"http://127.0.0.1:{self.hub_port}/hub/api"
        self._hub: Server | None = None
        self._people: dict[str, Person] = {}

    def person(self, name: str) -> Person:
        """Somebody with a browser of their own, always the same."""
        if name not in self._people:
            self._people[name] = Person(name, self.url, self.issuer)
        return self._people[name]

    def settings(self, **changed: Any) -> dict[str, Any]:
        """What the chart tells the hub, with this machine's addresses."""
        held = next(obj for obj in self.objects if obj["kind"] == "ConfigMap" and obj["metadata"]["name"] == HUB)
        found: dict[str, Any] = json.loads(held["data"]["settings.json"])
        found |= {
            "url": self.url,
            "api_url": f"http://127.0.0.1:{self.hub_port}",
            "proxy_api_url": f"http://127.0.0.1:{self.api_port}",
            "database": f"sqlite:///{self.folder}/hub.sqlite",
        }
        found["oidc"] |= {"callback": f"{self.url}/hub/oauth_callback", "ca_file": str(self.issuer.ca)}
        return found | changed

    def start(self, **changed: Any) -> None:
        """Starts the hub, or restarts it with these settings changed."""
        self.stop()
        (self.folder / "settings.json").write_text(json.dumps(self.settings(**changed)))
        (self.folder / "config.py").write_text(CONFIG.format(public=self.public, hub=self.hub_port))
        env = {
            "NOTEBOOK_HUB_SETTINGS": str(self.folder / "settings.json"),
            "NOTEBOOK_IMAGE": "site.invalid/trainyard/notebook:0.4.0",
            "JUPYTERHUB_CRYPT_KEY": "9f" * 32,
            "CONFIGPROXY_AUTH_TOKEN": "between-hub-and-proxy",
            "OIDC_CLIENT_SECRET": issuers.SECRET,
            "KUBECONFIG": str(self._kubeconfig()),
            "PYTHONPATH": str(programs.IMAGE),
        }
        argv = [programs.python(), "-m", "jupyterhub", f"--config={self.folder / 'config.py'}"]
        self._hub = Server(argv, self.folder / "hub.log", env)
        self._hub.wait(lambda: _answers(f"{self.url}/hub/health"), START_S)

    def stop(self) -> None:
        """Ends the hub alone: notebooks and proxy go on."""
        if self._hub:
            with suppress(ProcessLookupError):
                os.kill(self._hub.pid, signal.SIGTERM)  # its culler has a session of its own, and only the hub ends it
            end = time.monotonic() + STOP_S
            while not self._hub.ended and time.monotonic() < end:
                time.sleep(0.1)
            self._hub.stop()
        self._hub = None

    @property
    def log(self) -> str:
        """What the hub has said since it started."""
        return (self.folder / "hub.log").read_text()

    def _kubeconfig(self) -> Path:
        """The hub's own account, as its pod has it."""
        asked = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}}
        path = f"/api/v1/namespaces/{SPACE}/serviceaccounts/{HUB}/token"
        answer = self.server.call("POST", path, asked)
        assert answer.ok, answer.message
        config = yaml.safe_load(self.server.kubeconfig.read_text())
        config["users"] = [{"name": "hub", "user": {"token": answer.body["status"]["token"]}}]
        config["contexts"][0]["context"]["user"] = "hub"
        file = self.folder / "kubeconfig"
        file.write_text(yaml.safe_dump(config))
        return file


@pytest.fixture(scope="session")
def people(tmp_path_factory: pytest.TempPathFactory) -> Iterator[issuers.Issuer]:
    """ada is of vision, bob of speech and vision, sue of speech alone, vic looks only, and eve is nobody's."""
    with issuers.running(tmp_path_factory.mktemp("issuer")) as found:
        found.people = {
            "ada@example.org": ["vision-members"],
            "bob@example.org": ["speech-members", "vision-members"],
            "sue@example.org": ["speech-members"],
            "vic@example.org": ["vision-viewers"],
            "eve@example.org": ["everybody"],
        }
        yield found


@pytest.fixture(scope="session")
def objects(people: issuers.Issuer) -> list[dict[str, Any]]:
    """The release with notebooks for vision and speech."""
    os.environ["KUBECONFIG"] = "/dev/null"
    sets = ["enabled=true", "teams[0]=vision", "teams[1]=speech", "url=https://notebooks.example.org"]
    sets += [f"oidc.issuer={people.url}", "home.size=1Gi"]
    return package.render("kind", sets=[f"notebooks.{one}" for one in sets], values=[TEAMS])


@pytest.fixture(scope="session")
def server(
    people: issuers.Issuer, objects: list[dict[str, Any]], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[ApiServer]:
    """An API server that takes the issuer's tokens, with the release on it."""
    jwt = {
        "issuer": {"url": people.url, "audiences": [issuers.CLIENT], "certificateAuthority": people.ca.read_text()},
        "claimMappings": {"username": {"claim": "email", "prefix": ""}, "groups": {"claim": "groups", "prefix": ""}},
    }
    file = tmp_path_factory.mktemp("api") / "authentication.yaml"
    kind = {"apiVersion": "apiserver.config.k8s.io/v1", "kind": "AuthenticationConfiguration"}
    file.write_text(yaml.safe_dump(kind | {"jwt": [jwt]}))
    with running(authentication=file) as found:
        install(found, objects)
        yield found


@contextmanager
def _proxy(site: Site) -> Iterator[None]:
    argv = ["node", programs.proxy(), "--ip=127.0.0.1", f"--port={site.public}", "--api-ip=127.0.0.1"]
    hub = f"http://127.0.0.1:{site.hub_port}"
    argv += [f"--api-port={site.api_port}", f"--default-target={hub}", f"--error-target={hub}/hub/error"]
    started = Server(argv, site.folder / "proxy.log", {"CONFIGPROXY_AUTH_TOKEN": "between-hub-and-proxy"})
    try:
        started.wait(lambda: _answers(f"{site.url}/_chp_healthz"), 60)
        yield
    finally:
        started.stop()


@pytest.fixture(scope="session")
def node(server: ApiServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[nodes.Node]:
    """Where notebooks run."""
    with nodes.running(server, programs.python(), tmp_path_factory.mktemp("node")) as found:
        yield found


@pytest.fixture(scope="session")
def site(
    server: ApiServer, people: issuers.Issuer, objects: list[dict[str, Any]], node: nodes.Node,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Site]:  # fmt: skip
    """The hub and its proxy, started once."""
    found = Site(server, people, tmp_path_factory.mktemp("hub"), objects)
    with _proxy(found):
        try:
            found.start()
            yield found
        finally:
            found.stop()


def _answers(url: str) -> bool:
    with suppress(OSError):
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        with opener.open(url, timeout=3) as answer:
            return bool(answer.status == 200)
    return False
