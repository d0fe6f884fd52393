"""What the tests of log-ins stand on: an API server that takes the tokens of a Dex, and people who use the product."""

import base64
import json
import os
import subprocess
import sys
import textwrap
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml
from dex_issuer import Dex, Person, dex

from rendering import one
from trainyard.paths import ROOT
from trainyard_dev import browser, tools
from trainyard_dev.apiserver import ApiServer, running
from trainyard_dev.apiserver.install import install
from trainyard_dev.apiserver.processes import free_ports
from trainyard_dev.chart import package
from trainyard_dev.cluster.login import NOBODY
from trainyard_dev.cluster.tokens import Forger
from trainyard_dev.tools import build
from waiting import wait

SYSTEM = "trainyard-system"
ADA, BOB = "ada@example.org", "bob@example.org"
PEOPLE = [{"email": ADA, "groups": ["vision-members"]}, {"email": BOB, "groups": ["speech-members"]}]
REVIEW = {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}
RELOADED_S = 90.0  # the API server looks at its file at least once a minute
LOGIN_S = 180
BUILT = build.is_built(build.builder("dex"))
needs_dex = [pytest.mark.long, pytest.mark.skipif(not BUILT, reason="no Dex: bin/trainyard tools path dex")]
needs_browser = pytest.mark.skipif(browser.program() is None, reason="no Chromium: apt-get install chromium")
REUSED_S = 4  # Dex answers a second request within 3 s as it did the first time


def values(issuer: str, **login: Any) -> dict[str, Any]:
    """Two teams whose members come from the issuer, and the chart's issuer."""
    teams = [
        {"name": name, "gid": gid, "members": {"groups": [f"oidc:{name}-members"]}}
        for name, gid in (("vision", 20001), ("speech", 20002))
    ]
    contract = {"gpuImages": "cpu", "teams": teams, "login": {"issuer": issuer, **login}}
    notebooks = {"redirectURIs": ["https://notebooks.example.org/hub/oauth_callback"]}
    return {"global": {"contract": contract}, "login": {"enabled": True, "people": PEOPLE, "notebooks": notebooks}}


def rendered(folder: Path, said: dict[str, Any]) -> list[dict[str, Any]]:
    """The chart's objects for these values."""
    os.environ["KUBECONFIG"] = "/dev/null"  # helm must not find the cluster of the person who runs the tests
    file = folder / "values.yaml"
    file.write_text(yaml.safe_dump(said))
    return package.render("kind", values=[file])


def authentication(objects: list[dict[str, Any]]) -> str:
    """What the chart tells an API server."""
    text: str = one(objects, "ConfigMap", "trainyard-login")["data"]["authentication.yaml"]
    return text


class World:
    """An API server that takes the tokens of a Dex, which keeps its log-ins in it by the rights of its own account."""

    def __init__(self, folder: Path, server: ApiServer, issuer: Dex, file: Path) -> None:
        self.folder, self.server, self.issuer, self.file = folder, server, issuer, file
        config = yaml.safe_load(server.kubeconfig.read_text())["clusters"][0]["cluster"]
        self.address = config["server"]
        self.ca = folder / "cluster.crt"
        self.ca.write_bytes((server.folder / "pki" / "ca.crt").read_bytes())

    def environment(self, **more: str) -> dict[str, str]:
        """Of a person's shell: a home of its own, nothing of this machine's log-ins."""
        kept = {
            name: value for name, value in os.environ.items() if name in ("PATH", "LANG", "HOME", "TRAINYARD_CACHE")
        }
        return kept | {"KUBECONFIG": str(self.folder / "none"), "PYTHONPATH": str(ROOT / "scripts")} | more

    def trainyard(self, *argv: str, **env: str) -> subprocess.CompletedProcess[str]:
        """One command of the product."""
        return subprocess.run(
            [sys.executable, "-m", "trainyard", *argv],
            env=self.environment(**env), capture_output=True, text=True, timeout=LOGIN_S,
        )  # fmt: skip

    def login_arguments(self) -> list[str]:
        """Of a log-in at this issuer for this cluster."""
        found = [f"--issuer={self.issuer.url}", f"--issuer-ca={self.issuer.ca}"]
        return [*found, f"--server={self.address}", f"--certificate-authority={self.ca}"]

    def person(self, email: str = ADA) -> Person:
        """Somebody with a browser."""
        return Person(self.issuer, email, self.issuer.passwords[email])

    def browser(self, email: str = ADA) -> str:
        """A program for $BROWSER that logs this person in, as webbrowser starts it."""
        script = self.folder / f"browser-{email.partition('@')[0]}"
        script.write_text(
            textwrap.dedent(f"""\
                #!{sys.executable}
                import sys
                sys.path[:0] = {sys.path!r}
                from types import SimpleNamespace
                import ssl
                from dex_issuer import Person
                tls = ssl.create_default_context(cafile={str(self.issuer.ca)!r})
                page = Person(SimpleNamespace(tls=tls), {email!r}, {self.issuer.passwords[email]!r}).log_in(sys.argv[1])
                open({str(self.folder / "page.html")!r}, "w").write(page[1])
            """)
        )
        script.chmod(0o700)
        return f"{script} %s &"

    def logged_in(self, home: Path, email: str = ADA) -> Path:
        """The kubeconfig of somebody who has logged in with a browser."""
        file = home / "kubeconfig"
        done = self.trainyard(
            "login", *self.login_arguments(), "-n", "vision", "-o", str(file),
            BROWSER=self.browser(email), TRAINYARD_LOGIN=str(home / "login"),
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        assert f"logged in as {email}" in done.stdout
        return file

    def kubectl(self, home: Path, *argv: str, **env: str) -> subprocess.CompletedProcess[str]:
        """kubectl with the kubeconfig of `logged_in`."""
        return subprocess.run(
            [tools.binary("kubectl"), "--kubeconfig", home / "kubeconfig", *argv],
            env=self.environment(TRAINYARD_LOGIN=str(home / "login"), **env),
            capture_output=True, text=True, timeout=60, stdin=subprocess.DEVNULL,
        )  # fmt: skip

    def asked(self, token: str) -> tuple[int, dict[str, Any]]:
        """(status, who the API server takes the bearer for)."""
        done = subprocess.run(
            [tools.binary("kubectl"), "--kubeconfig", "/dev/null", "--server", self.address,
             "--certificate-authority", self.ca, "--token", token, "create", "--raw",
             "/apis/authentication.k8s.io/v1/selfsubjectreviews", "-f", "-"],
            input=json.dumps(REVIEW), env=self.environment(), capture_output=True, text=True, timeout=60,
        )  # fmt: skip
        if done.returncode:
            assert "Unauthorized" in done.stderr or "must be logged in" in done.stderr, done.stderr
            return 401, {}
        found: dict[str, Any] = json.loads(done.stdout)["status"]["userInfo"]
        return 201, found

    @property
    def log(self) -> str:
        """What the API server has said."""
        return (self.server.folder / "kube-apiserver.log").read_text()

    def refused(self, token: str, why: str) -> None:
        """The API server takes the token for nobody's, and its log says why."""
        before = len(self.log)
        assert self.asked(token)[0] == 401
        end = time.monotonic() + 5
        while why not in self.log[before:] and time.monotonic() < end:
            time.sleep(0.1)
        assert why in self.log[before:], self.log[before:][-2000:]


@contextmanager
def made(folder: Path) -> Iterator[World]:
    """The whole of it, with two people and two teams; gone afterwards."""
    port, telemetry = free_ports(2)
    objects = rendered(folder, values(f"https://127.0.0.1:{port}/dex"))
    file = folder / "authentication.yaml"
    file.write_text(yaml.safe_dump(NOBODY))  # as the test cluster begins
    (folder / "dex").mkdir()
    with running(authentication=file) as server, dex(folder / "dex", objects, port, telemetry) as issuer:
        install(server, objects)
        issuer.storage = {"inCluster": False, "kubeConfigFile": str(_account(folder, server))}
        issuer.start()
        world = World(folder, server, issuer, file)
        file.write_text(authentication(objects))
        wait(lambda: world.asked(token(world))[0] == 201, "the issuer in the API server's file", RELOADED_S, 1.0)
        yield world


def _account(folder: Path, server: ApiServer) -> Path:
    """A kubeconfig with a token of Dex's own account: what the chart's Role lacks would stop it."""
    path = f"/api/v1/namespaces/{SYSTEM}/serviceaccounts/trainyard-login"
    answer = server.call("POST", f"{path}/token", {"spec": {"expirationSeconds": 7200}})
    assert answer.ok, answer.message
    config = yaml.safe_load(server.kubeconfig.read_text())
    config["users"][0]["user"] = {"token": answer.body["status"]["token"]}
    config["contexts"][0]["context"]["namespace"] = SYSTEM
    file = folder / "dex" / "kubeconfig"
    file.write_text(yaml.safe_dump(config))
    return file


def forger(world: World, *, own: bool = False) -> Forger:
    """Signs with Dex's own key, or with another under its name."""
    keys = world.server.call("GET", f"/apis/dex.coreos.com/v1/namespaces/{SYSTEM}/signingkeies")
    assert keys.ok, keys.message
    return Forger(world.issuer.url, keys.body, own=own)


def token(world: World, **changed: Any) -> str:
    """Ada's token as Dex would sign it, with these claims changed."""
    return forger(world).token(**changed)


def kept(home: Path) -> tuple[Path, dict[str, str]]:
    """The file with the tokens, and what is in it."""
    (file,) = (home / "login").glob("*.json")
    return file, json.loads(file.read_text())


def stale(home: Path) -> dict[str, str]:
    """Makes the kept ID token one that has ended; the one that renews stays."""
    file, held = kept(home)
    claims = {"exp": time.time() - 5}
    ended = "e30." + base64.urlsafe_b64encode(json.dumps(claims).encode()).decode().rstrip("=") + ".x"
    file.write_text(json.dumps(held | {"id_token": ended}))
    return held
