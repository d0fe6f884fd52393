"""Notebooks on a run's cluster: log-in and notebooks switched on together, and all as before afterwards."""

from __future__ import annotations

import base64
import hashlib
import json
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from trainyard_dev import browser
from trainyard_dev.cluster import login
from trainyard_dev.e2e import releases
from trainyard_dev.e2e.context import NAMESPACE, OTHER, SYSTEM, Context
from trainyard_dev.e2e.notebook_page import Desk
from trainyard_dev.e2e.recorder import require

PREFIX = "oidc:"
SPACE = f"{SYSTEM}-notebooks"
PORT = 30557  # of every node, where the hub is reached
ADA, BOB = "ada@example.org", "bob@example.org"
GROUPS = {ADA: [f"{NAMESPACE}-members"], BOB: [f"{OTHER}-members"]}
TOLD_S = 120  # the API server looks once a minute
TOKEN_S = 120  # as long as a token counts here, so that its end and its renewal are seen
DEX = 5556  # where the issuer's pod listens: what a NetworkPolicy sees of a way by a node's port
# Small enough for nodes of one machine.
SMALL = {"cpu": 0.1, "cpuLimit": 2, "memory": "512Mi", "memoryLimit": "2Gi"}
DEADLINE_S = 900
PROFILES = [
    {"name": "small", "title": "Small", **SMALL},
    {"name": "gpu", "title": "One GPU", **SMALL, "gpus": 1, "deadlineSeconds": DEADLINE_S},
]
HUB = "trainyard-notebook-hub-0"
NOTEBOOK = "trainyard-notebook-ada-40example-2eorg"


@dataclass
class Site:
    """The hub as the chart runs it on this cluster.

    Args:
        address: of a node, by which browsers and pods reach issuer and hub.
        passwords: by e-mail address.
    """

    context: Context
    folder: Path
    layer: releases.Layer
    address: str
    passwords: dict[str, str] = field(default_factory=dict)

    @property
    def hub(self) -> str:
        """Where people go."""
        return f"http://{self.address}:{PORT}"

    def tell(self, *, people: Sequence[str] = (ADA, BOB), blocked: Sequence[str] = (), **notebooks: Any) -> float:
        """An upgrade, and the API server told of what the chart has published then; seconds of the upgrade.

        Args:
            people: whom the issuer knows.
            blocked: whom the API server refuses.
            notebooks: further values of the option.
        """
        teams = releases.teams()
        for team in teams:
            team["members"]["groups"] = [*team["members"]["groups"], f"{PREFIX}{team['name']}-members"]
        issuer = login.issuer(self.context.engine, self.context.cluster)
        values = {
            "global": {
                "contract": {
                    "teams": teams,
                    "login": {"issuer": issuer, "blocked": list(blocked)},
                    "scheduler": {"preempt": True},  # off by default; a job is to displace a notebook
                }
            },
            "login": {
                "enabled": True,
                "people": [{"email": one, "groups": GROUPS[one]} for one in people],
                "service": {"type": "NodePort", "nodePort": login.PORT},
                "lifetimes": {"token": f"{TOKEN_S}s"},
                "notebooks": {"redirectURIs": [f"{self.hub}/hub/oauth_callback"], "namespace": SPACE},
            },
            "serving": {"enabled": True},
            "notebooks": {
                "enabled": True,
                "teams": ["*"],
                "url": self.hub,
                "profiles": PROFILES,
                "service": {"type": "NodePort", "nodePort": PORT},
                "oidc": {"egress": [{"ports": [{"protocol": "TCP", "port": port} for port in (login.PORT, DEX)]}]},
                **notebooks,
            },
        }
        seconds = self.layer.set(values)
        published = self.context.kubectl.find("configmap", "trainyard-login", "-n", SYSTEM)
        require(published, "the chart published no ConfigMap trainyard-login")
        assert published
        _told(self.context, published["data"]["authentication.yaml"])
        self.passwords |= {
            email: one["password"]
            for email, one in json.loads(self.secret("trainyard-login-people", "people.json")).items()
        }
        return seconds

    @contextmanager
    def desk(self, email: str) -> Iterator[Desk]:
        """A person at a window of their own."""
        trusted = browser.key_digest(self.secret("trainyard-login-tls", "tls.crt").encode())
        with browser.window(trusted=trusted) as page:
            yield Desk(page, self.hub, email, self.passwords[email])

    def secret(self, name: str, key: str) -> str:
        """What a Secret of the release's namespace holds."""
        found = self.context.kubectl.find("secret", name, "-n", SYSTEM)
        require(found, f"there is no Secret {name}")
        assert found
        return base64.b64decode(found["data"][key]).decode()

    def uid(self, pod: str, namespace: str) -> str:
        """Which pod has that name now. Raises CheckError when there is none."""
        found = self.context.kubectl.find("pod", pod, "-n", namespace)
        require(found, f"there is no pod {namespace}/{pod}")
        assert found
        return str(found["metadata"]["uid"])

    def code(self) -> Path:
        """A folder of code for `trainyard train`."""
        folder = self.folder / "code"
        folder.mkdir(exist_ok=True)
        (folder / "train.py").write_text("print('trained')\n")
        return folder

    def picture(self, name: str) -> Path:
        """Where a picture of that name goes."""
        return self.folder / f"{name}.png"


@contextmanager
def site(context: Context, folder: Path) -> Iterator[Site]:
    """Both options switched on for the time of the block; afterwards neither, and no notebook."""
    address = login.issuer(context.engine, context.cluster).partition("//")[2].partition(":")[0]
    _none(context)
    with releases.layer(context) as layer:
        found = Site(context, folder, layer, address)
        try:
            found.tell()
            yield found
        finally:
            login.publish(context.cluster, yaml.safe_dump(login.NOBODY))


def _told(context: Context, text: str) -> None:
    """Tells the API server whose tokens count, and waits until it says that it has read it. Raises CheckError."""
    login.publish(context.cluster, text)
    due = f'hash="sha256:{hashlib.sha256(text.encode()).hexdigest()}"'
    end = time.monotonic() + TOLD_S
    while due not in context.kubectl("get", "--raw", "/metrics").stdout:
        require(time.monotonic() < end, f"the API server has not read within {TOLD_S} s whose tokens count")
        time.sleep(2)


def _none(context: Context) -> None:
    """Ends notebooks that an earlier run has left on a kept cluster, and their homes."""
    context.kubectl("delete", "pods", "-A", "-l", "trainyard.io/notebook=true")
    for one in context.kubectl.get("pvc", "-A"):
        name, space = one["metadata"]["name"], one["metadata"]["namespace"]
        if name.startswith("trainyard-notebook-"):
            context.kubectl("delete", "pvc", "-n", space, name)
