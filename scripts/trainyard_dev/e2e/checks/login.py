"""Log-in by OpenID Connect, an option: a member logs in by a browser, works in the own team only, and leaves."""

from __future__ import annotations

import base64
import json
import os
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from trainyard.login import kubeconfig as configs
from trainyard.paths import ROOT
from trainyard.shell import run
from trainyard_dev import browser, tools
from trainyard_dev.chart import package as chart
from trainyard_dev.cluster import login
from trainyard_dev.e2e import releases
from trainyard_dev.e2e.context import NAMESPACE, OTHER, SYSTEM, Context
from trainyard_dev.e2e.recorder import require

TITLES = {
    "login.browser": "a member logs in by a browser, without a certificate; a wrong password is refused",
    "login.team": "the member works in the own team, and gets nothing of another or of the platform",
    "login.left": "a member who left is refused by issuer and API server at once, and another one is not",
    "login.off": "switched off, nothing of it runs, and nobody's token counts",
}
ADA, BOB = "ada@example.org", "bob@example.org"
PREFIX = "oidc:"
LOGIN_S, TOLD_S = 90, 120.0


def member(context: Context) -> None:
    """All of it on one upgrade, one more for who leaves, and one that takes it back."""
    missing = "" if login.is_on(context.cluster) else "this cluster's API server was made without log-in: make it anew"
    missing = missing or ("" if browser.program() else "there is no Chromium here: apt-get install chromium")
    if missing:
        for check_id, title in TITLES.items():
            context.recorder.skip(check_id, title, missing)
        return
    with tempfile.TemporaryDirectory(prefix="login-") as folder:
        with _site(context, Path(folder)) as site:
            ada, bob = (site.person(name) for name in ("ada", "bob"))
            with context.recorder.check("login.browser", TITLES["login.browser"]) as figures:
                figures["seconds"] = ada.log_in(ADA, site.passwords[ADA], wrong=site.passwords[BOB])
                bob.log_in(BOB, site.passwords[BOB])
            with context.recorder.check("login.team", TITLES["login.team"]) as figures:
                figures |= _team(ada)
            with context.recorder.check("login.left", TITLES["login.left"]) as figures:
                site.tell(blocked=[ADA], people=[BOB])
                figures["refused after s"] = _left(ada, bob)
        with context.recorder.check("login.off", TITLES["login.off"]):
            held = context.kubectl("get", "all,secret,configmap,networkpolicy", "-n", SYSTEM, "-o", "name",
                                   "-l", "app.kubernetes.io/name=login").stdout.split()  # fmt: skip
            require(not held, f"still there: {', '.join(held)}")
            code, said = bob.kubectl("get", "pods")
            require(code != 0, f"a token still counts: {said}")


@dataclass
class Person:
    """Somebody with a home, a browser and nothing else."""

    home: Path
    issuer: str
    ca: Path
    cluster: configs.Cluster
    trusted: str

    @property
    def config(self) -> Path:
        """What `trainyard login` has written."""
        return self.home / "kubeconfig"

    @property
    def env(self) -> dict[str, str]:
        """Of this person's shell."""
        return {"KUBECONFIG": str(self.config), "TRAINYARD_LOGIN": str(self.home / "login"), "BROWSER": "true"}

    def log_in(self, email: str, password: str, wrong: str = "") -> float:
        """By `trainyard login` and a real browser; its seconds. `wrong` is typed first, and must be refused."""
        authority = self.home / "cluster.crt"
        authority.write_text(self.cluster.ca)
        argv = [ROOT / "bin" / "trainyard", "login", f"--issuer={self.issuer}", f"--issuer-ca={self.ca}",
                f"--server={self.cluster.server}", f"--certificate-authority={authority}", "-n", NAMESPACE,
                "-o", str(self.config)]  # fmt: skip
        began = time.monotonic()
        with (
            browser.window(trusted=self.trusted) as page,
            subprocess.Popen(
                list(map(str, argv)), env=os.environ | self.env, text=True,
                stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            ) as process,
        ):  # fmt: skip
            try:
                assert process.stderr
                process.stderr.readline()
                page.open(process.stderr.readline().strip())
                for one in filter(None, (wrong, password)):
                    page.fill("#login", email)
                    page.fill("#password", one)
                    page.click("#submit-login")
                    page.wait_text("Logged in" if one == password else "Invalid Email Address and password")
                out, said = process.communicate(timeout=LOGIN_S)
            finally:
                process.kill()
        require(process.returncode == 0 and f"logged in as {email}" in out, f"trainyard login: {said[-600:]}")
        return round(time.monotonic() - began, 1)

    def kubectl(self, *args: str) -> tuple[int, str]:
        """(code, what it said)."""
        done = run([tools.binary("kubectl"), *args], check=False, timeout=LOGIN_S, env=self.env)
        return done.returncode, (done.stdout or "") + (done.stderr or "")

    def trainyard(self, *args: str) -> tuple[int, str]:
        """(code, what it said)."""
        done = run([ROOT / "bin" / "trainyard", *args], check=False, timeout=LOGIN_S, env=self.env)
        return done.returncode, (done.stdout or "") + (done.stderr or "")


@dataclass
class Site:
    """The issuer as the chart runs it on this cluster."""

    context: Context
    folder: Path
    package: Path
    files: list[Path]
    issuer: str
    passwords: dict[str, str] = field(default_factory=dict)

    def tell(self, blocked: list[str], people: list[str]) -> None:
        """An upgrade with these people, and the API server told of what the chart has published then."""
        groups = {ADA: [f"{NAMESPACE}-members"], BOB: [f"{OTHER}-members"]}
        teams = yaml.safe_load((ROOT / releases.TEAMS).read_text())["global"]["contract"]["teams"]
        for team in teams:
            team["members"]["groups"] = [*team["members"]["groups"], f"{PREFIX}{team['name']}-members"]
        values = {
            "global": {"contract": {"teams": teams, "login": {"issuer": self.issuer, "blocked": blocked}}},
            "login": {
                "enabled": True,
                "people": [{"email": one, "groups": groups[one]} for one in people],
                "service": {"type": "NodePort", "nodePort": login.PORT},
            },
        }
        file = self.folder / "login.yaml"
        file.write_text(yaml.safe_dump(values))
        releases.put(self.context, "upgrade", self.package, [*self.files, file])
        kubectl = self.context.kubectl
        published = kubectl.find("configmap", "trainyard-login", "-n", SYSTEM)
        require(published, "the chart published no ConfigMap trainyard-login")
        assert published
        login.publish(self.context.cluster, published["data"]["authentication.yaml"])
        (self.folder / "ca.crt").write_text(published["data"]["ca.crt"])
        held = _secret(self.context, "trainyard-login-people")["people.json"]
        self.passwords |= {email: one["password"] for email, one in json.loads(held).items()}

    def person(self, name: str) -> Person:
        """Somebody who has never been here."""
        home = self.folder / name
        home.mkdir()
        cluster, _ = configs.chosen([Path(str(self.context.kubectl.kubeconfig))], "")
        trusted = browser.key_digest(_secret(self.context, "trainyard-login-tls")["tls.crt"].encode())
        return Person(home, self.issuer, self.folder / "ca.crt", cluster, trusted)


@contextmanager
def _site(context: Context, folder: Path) -> Iterator[Site]:
    """The option switched on for the time of the block, and all as before afterwards."""
    package = chart.package(folder)
    with releases.values(context) as files:
        site = Site(context, folder, package, files, login.issuer(context.engine, context.cluster))
        try:
            site.tell(blocked=[], people=[ADA, BOB])
            yield site
        finally:
            login.publish(context.cluster, yaml.safe_dump(login.NOBODY))
            releases.put(context, "upgrade", package, files)
            context.contract = releases.read_contract(context.kubectl)


def _secret(context: Context, name: str) -> dict[str, str]:
    found = context.kubectl.find("secret", name, "-n", SYSTEM)
    require(found, f"there is no Secret {name}")
    assert found
    return {key: base64.b64decode(value).decode() for key, value in found["data"].items()}


def _team(ada: Person) -> dict[str, Any]:
    """What a member who has logged in may do. Raises CheckError."""
    end = time.monotonic() + TOLD_S
    while (asked := ada.kubectl("auth", "whoami", "-o", "jsonpath={.status.userInfo}"))[0] != 0:
        require(time.monotonic() < end, f"the API server takes no token: {asked[1][-400:]}")
        time.sleep(3)
    who = json.loads(asked[1])
    require(who["username"] == f"{PREFIX}{ADA}", f"the API server takes her for {who}")
    for verb, expected in (
        (("create", "pytorchjobs.kubeflow.org", "-n", NAMESPACE), "yes"),
        (("get", "secrets", "-n", NAMESPACE), "no"),
        (("list", "pods", "-n", OTHER), "no"),
        (("get", "signingkeies.dex.coreos.com", "-n", SYSTEM), "no"),
        (("get", "secrets", "-n", SYSTEM), "no"),
    ):
        said = ada.kubectl("auth", "can-i", *verb)[1].strip().splitlines()[-1]
        require(said == expected, f"may she {' '.join(verb)}? {said}")
    code, said = ada.trainyard("gpus", "-o", "json")
    require(code == 0 and json.loads(said)["team"] == NAMESPACE, f"trainyard gpus: {said[-400:]}")
    code, said = ada.kubectl("get", "pods", "-n", OTHER)
    denied = f'User "{PREFIX}{ADA}" cannot list resource "pods"'
    require(code != 0 and denied in said, f"pods of {OTHER}: {said[-300:]}")
    return {"groups": ", ".join(sorted(who["groups"]))}


def _left(ada: Person, bob: Person) -> float:
    """Seconds until the API server refuses her. Raises CheckError when it goes on, or refuses somebody else too."""
    began = time.monotonic()
    while (said := ada.kubectl("get", "pods"))[0] == 0 or "Unauthorized" not in said[1]:
        require(time.monotonic() < began + TOLD_S, f"she is still let in: {said[1][-300:]}")
        time.sleep(2)
    seconds = round(time.monotonic() - began, 1)
    code, said_bob = bob.kubectl("auth", "can-i", "list", "pods", "-n", OTHER)
    require(code == 0, f"another member is refused, too: {said_bob[-300:]}")
    for file in (ada.home / "login").glob("*.json"):  # what she holds is made old, so that a new one is asked for
        held = json.loads(file.read_text())
        file.write_text(json.dumps(held | {"id_token": "e30.eyJleHAiOjF9.x"}))
    code, text = ada.trainyard("gpus")
    require(code != 0 and "the issuer does not renew the log-in" in text, f"she gets a new token: {text[-300:]}")
    return seconds
