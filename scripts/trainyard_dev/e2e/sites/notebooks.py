"""Notebooks on a run's cluster: log-in and notebooks switched on together; the previous state afterwards."""

import hashlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from trainyard_dev import browser
from trainyard_dev.cluster import login
from trainyard_dev.e2e.context import SYSTEM, Context
from trainyard_dev.e2e.recorder import had, patience
from trainyard_dev.e2e.sites.login import ADA, BOB, Issuer
from trainyard_dev.e2e.sites.notebook_page import NotebookWindow

SPACE = f"{SYSTEM}-notebooks"
PORT = 30557  # the hub's port on every node
TOLD_S = 120  # the API server checks once a minute
DEX = 5556  # the issuer's port in its pod, which NetworkPolicies see for connections to a node's port
# Small enough for nodes of one machine.
SMALL = {"cpu": 0.1, "cpuLimit": 2, "memory": "512Mi", "memoryLimit": "2Gi"}
DEADLINE_S = 900
PROFILES = [
    {"name": "small", "title": "Small", **SMALL},
    {"name": "gpu", "title": "One GPU", **SMALL, "gpus": 1, "deadlineSeconds": DEADLINE_S},
]
HUB = "trainyard-notebook-hub-0"
NOTEBOOK = "trainyard-notebook-ada-40example-2eorg"


class Site(Issuer):
    """The hub that the chart runs on this cluster."""

    @property
    def hub(self) -> str:
        """The hub's public address: that of the node where browsers and pods reach the issuer, too."""
        return f"http://{self.issuer.partition('//')[2].partition(':')[0]}:{PORT}"

    def tell(self, *, people: Sequence[str] = (ADA, BOB), blocked: Sequence[str] = (), **notebooks: Any) -> float:
        """Upgrade, and configure the API server with the chart's output; returns the upgrade's seconds.

        Args:
            people: those that the issuer has.
            blocked: people that the API server refuses.
            notebooks: further values of the option.
        """
        hub = {"redirectURIs": [f"{self.hub}/hub/oauth_callback"], "namespace": SPACE}
        preempt = {"scheduler": {"preempt": True}}  # off by default; a job must displace a notebook
        option = {
            "enabled": True,
            "teams": ["*"],
            "url": self.hub,
            "profiles": PROFILES,
            "service": {"type": "NodePort", "nodePort": PORT},
            "oidc": {"egress": [{"ports": [{"protocol": "TCP", "port": port} for port in (login.PORT, DEX)]}]},
            **notebooks,
        }
        seconds, published = self.upgrade(
            people, blocked, hub, contract=preempt, serving={"enabled": True}, notebooks=option, kfpApi=self.kfp_api
        )
        _wait_until_read(self.context, published["authentication.yaml"])
        return seconds

    @contextmanager
    def desk(self, email: str) -> Iterator[NotebookWindow]:
        """A person with their own window."""
        with browser.window(trusted=self.trusted) as page:
            yield NotebookWindow(page, self.hub, email, self.passwords[email])

    def uid(self, pod: str, namespace: str) -> str:
        """The uid of the pod with that name. Raises CheckError if there is none."""
        found = had(self.context.kubectl.find("pod", pod, "-n", namespace), f"the pod {namespace}/{pod} does not exist")
        return str(found["metadata"]["uid"])

    def code(self) -> Path:
        """A folder of code for `trainyard train`."""
        folder = self.folder / "code"
        folder.mkdir(exist_ok=True)
        (folder / "train.py").write_text("print('trained')\n")
        return folder

    def picture(self, name: str) -> Path:
        """The path of a picture with that name."""
        return self.folder / f"{name}.png"


@contextmanager
def site(context: Context, folder: Path) -> Iterator[Site]:
    """Both options switched on while the block runs; afterwards neither, and no notebook."""
    _none(context)
    with Site.on(context, folder) as found:
        yield found


def _wait_until_read(context: Context, text: str) -> None:
    """Configures the API server's trusted issuers, and waits until it has read them. Raises CheckError."""
    login.publish(context.cluster, text)
    due = f'hash="sha256:{hashlib.sha256(text.encode()).hexdigest()}"'
    wait = patience(TOLD_S)
    while due not in context.kubectl("get", "--raw", "/metrics").stdout:
        wait(f"the API server did not load the issuer's configuration within {TOLD_S} s")


def _none(context: Context) -> None:
    """Removes notebooks that an earlier run left on a kept cluster, and their homes."""
    context.kubectl("delete", "pods", "-A", "-l", "trainyard.io/notebook=true")
    for one in context.kubectl.get("pvc", "-A"):
        name, space = one["metadata"]["name"], one["metadata"]["namespace"]
        if name.startswith("trainyard-notebook-"):
            context.kubectl("delete", "pvc", "-n", space, name)
