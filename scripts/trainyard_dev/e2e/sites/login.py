"""The option `login` on a run's cluster: its people, and an API server configured with the chart's output."""

import base64
import json
import ssl
import urllib.error
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

import yaml

from trainyard.login import kubeconfig as configs
from trainyard_dev import browser
from trainyard_dev.cluster import login
from trainyard_dev.cluster.tokens import Forger
from trainyard_dev.e2e import releases
from trainyard_dev.e2e.context import NAMESPACE, OTHER, SYSTEM, Context
from trainyard_dev.e2e.recorder import had, require
from trainyard_dev.e2e.sites.person import Person

PREFIX = "oidc:"
ADA, BOB, CID, EVE = (f"{name}@example.org" for name in ("ada", "bob", "cid", "eve"))
# eve's issuer claims names for her that no issuer may give, and names that look like the team's.
GROUPS = {
    ADA: [f"{NAMESPACE}-members"],
    BOB: [f"{OTHER}-members"],
    CID: ["everyone"],  # a member of the team by name
    EVE: ["system:masters", f"{PREFIX}{NAMESPACE}-members", f"{NAMESPACE}-members-2", "system:nodes"],
}
KFP_PORT = 30558  # of the service behind kfp.Client on every node
TOKEN_S = 120  # lifetime of a token here, so that its end can be tested
REVIEWS = "/apis/authentication.k8s.io/v1/selfsubjectreviews"
REVIEW = {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}


def missing(context: Context) -> str:
    """The reason why nobody can log in here; "" if log-in works."""
    on = login.is_on(context.cluster)
    return browser.missing() if on else "this cluster's API server was created without log-in: recreate the cluster"


@dataclass
class Issuer:
    """The issuer as the chart runs it on this cluster."""

    context: Context
    folder: Path
    layer: releases.Layer
    issuer: str
    passwords: dict[str, str] = field(default_factory=dict)

    def tell(self) -> object:
        """Upgrade with all people, and configure the API server with the chart's output."""
        raise NotImplementedError

    def upgrade(
        self, people: Sequence[str], blocked: Sequence[str], hub: dict[str, Any], *,
        members: Sequence[str] = (), contract: dict[str, Any] | None = None, **more: Any,
    ) -> tuple[float, dict[str, str]]:  # fmt: skip
        """Upgrade; returns its seconds, and the chart's output for the API server.

        Args:
            people: those that the issuer has.
            blocked: people that the API server refuses.
            hub: the issuer's settings for the notebooks' hub.
            members: people in the first team by name.
            contract, more: further values, in the contract and elsewhere.
        """
        teams = releases.teams()
        for team in teams:
            held = team["members"]
            held["groups"] = [*held["groups"], f"{PREFIX}{team['name']}-members"]
            if members and team["name"] == NAMESPACE:
                held["users"] = [*held.get("users", []), *(f"{PREFIX}{one}" for one in members)]
        told = {"teams": teams, "login": {"issuer": self.issuer, "blocked": list(blocked)}, **(contract or {})}
        option = {
            "enabled": True,
            "people": [{"email": one, "groups": GROUPS[one]} for one in people],
            "service": {"type": "NodePort", "nodePort": login.PORT},
            "lifetimes": {"token": f"{TOKEN_S}s"},
            "notebooks": hub,
        }
        seconds = self.layer.set({"global": {"contract": told}, "login": option, **more})
        found = self.context.kubectl.find("configmap", "trainyard-login", "-n", SYSTEM)
        published = had(found, "the chart published no ConfigMap trainyard-login")["data"]
        known = json.loads(self.secret("trainyard-login-people")["people.json"])
        self.passwords |= {email: one["password"] for email, one in known.items()}
        return seconds, published

    @property
    def kfp_api(self) -> dict[str, Any]:
        """Values of the service behind kfp.Client, at the node where people reach the issuer."""
        url = f"http://{self.issuer.partition('//')[2].partition(':')[0]}:{KFP_PORT}"
        service = {"type": "NodePort", "nodePort": KFP_PORT}
        return {"enabled": True, "url": url, "replicas": 1, "service": service}

    @classmethod
    @contextmanager
    def on(cls, context: Context, folder: Path) -> Iterator[Self]:
        """The option switched on while the block runs, with all people; the previous state afterwards."""
        with releases.layer(context) as layer:
            found = cls(context, folder, layer, login.issuer(context.engine, context.cluster))
            try:
                found.tell()
                yield found
            finally:
                login.publish(context.cluster, yaml.safe_dump(login.NOBODY))

    def secret(self, name: str) -> dict[str, str]:
        """The content of a Secret in the release's namespace."""
        found = had(self.context.kubectl.find("secret", name, "-n", SYSTEM), f"the Secret {name} does not exist")
        return {key: base64.b64decode(value).decode() for key, value in found["data"].items()}

    @property
    def trusted(self) -> str:
        """Digest of the issuer's key, for a browser."""
        return browser.key_digest(self.secret("trainyard-login-tls")["tls.crt"].encode())


class Site(Issuer):
    """Log-in without notebooks, with four people."""

    def tell(
        self, *, people: Sequence[str] = tuple(GROUPS), members: Sequence[str] = (CID,), blocked: Sequence[str] = ()
    ) -> None:
        """Upgrade, and configure the API server with the chart's output; arguments as for `upgrade`."""
        hub = {"redirectURIs": ["https://notebooks.invalid/hub/oauth_callback"]}
        _, published = self.upgrade(people, blocked, hub, members=members, kfpApi=self.kfp_api)
        login.publish(self.context.cluster, published["authentication.yaml"])
        (self.folder / "ca.crt").write_text(published["ca.crt"])

    def person(self, email: str) -> Person:
        """A person who has never logged in."""
        home = self.folder / email.partition("@")[0]
        home.mkdir()
        ca = self.folder / "ca.crt"
        return Person(home, email, self.passwords[email], self.issuer, ca, self.cluster, self.trusted)

    @property
    def cluster(self) -> configs.Cluster:
        """The run's API server, in a kubeconfig's form."""
        return configs.chosen([Path(str(self.context.kubectl.kubeconfig))], "")[0]

    def forger(self, *, own: bool = False) -> Forger:
        """A signer with the issuer's key, which an administrator can read, or with another one under its name."""
        keys = json.loads(self.context.kubectl("get", "signingkeies.dex.coreos.com", "-n", SYSTEM, "-o", "json").stdout)
        return Forger(self.issuer, keys, own=own)

    def asked(self, token: str) -> dict[str, Any] | None:
        """The API server's user for the token's bearer; None: it is refused."""
        cluster = self.cluster
        request = urllib.request.Request(
            f"{cluster.server}{REVIEWS}", data=json.dumps(REVIEW).encode(), method="POST",
            headers={"Authorization": f"Bearer {token}", "Content-Type": "application/json"},
        )  # fmt: skip
        tls = urllib.request.HTTPSHandler(context=ssl.create_default_context(cadata=cluster.ca))
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}), tls)
        try:
            with opener.open(request, timeout=20) as answer:
                found: dict[str, Any] = json.loads(answer.read())["status"]["userInfo"]
                return found
        except urllib.error.HTTPError as error:
            require(error.code == 401, f"the API server answers {error.code}: {error.read()[:300]!r}")
            return None
