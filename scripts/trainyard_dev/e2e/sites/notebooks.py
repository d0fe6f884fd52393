"""Notebooks on a run's cluster: log-in and notebooks switched on together, and all as before afterwards."""

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
PORT = 30557  # of every node, where the hub is reached
TOLD_S = 120  # the API server looks once a minute
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


class Site(Issuer):
    """The hub as the chart runs it on this cluster."""

    @property
    def hub(self) -> str:
        """Where people go: of the node by which browsers and pods reach the issuer, too."""
        return f"http://{self.issuer.partition('//')[2].partition(':')[0]}:{PORT}"

    def tell(self, *, people: Sequence[str] = (ADA, BOB), blocked: Sequence[str] = (), **notebooks: Any) -> float:
        """An upgrade, and the API server told of what the chart has published then; seconds of the upgrade.

        Args:
            people: whom the issuer knows.
            blocked: whom the API server refuses.
            notebooks: further values of the option.
        """
        hub = {"redirectURIs": [f"{self.hub}/hub/oauth_callback"], "namespace": SPACE}
        preempt = {"scheduler": {"preempt": True}}  # off by default; a job is to displace a notebook
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
            people, blocked, hub, contract=preempt, serving={"enabled": True}, notebooks=option
        )
        _wait_until_read(self.context, published["authentication.yaml"])
        return seconds

    @contextmanager
    def desk(self, email: str) -> Iterator[NotebookWindow]:
        """A person at a window of their own."""
        with browser.window(trusted=self.trusted) as page:
            yield NotebookWindow(page, self.hub, email, self.passwords[email])

    def uid(self, pod: str, namespace: str) -> str:
        """Which pod has that name now. Raises CheckError when there is none."""
        found = had(self.context.kubectl.find("pod", pod, "-n", namespace), f"there is no pod {namespace}/{pod}")
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
    _none(context)
    with Site.on(context, folder) as found:
        yield found


def _wait_until_read(context: Context, text: str) -> None:
    """Tells the API server whose tokens count, and waits until it says that it has read it. Raises CheckError."""
    login.publish(context.cluster, text)
    due = f'hash="sha256:{hashlib.sha256(text.encode()).hexdigest()}"'
    wait = patience(TOLD_S)
    while due not in context.kubectl("get", "--raw", "/metrics").stdout:
        wait(f"the API server has not read within {TOLD_S} s whose tokens count")


def _none(context: Context) -> None:
    """Ends notebooks that an earlier run has left on a kept cluster, and their homes."""
    context.kubectl("delete", "pods", "-A", "-l", "trainyard.io/notebook=true")
    for one in context.kubectl.get("pvc", "-A"):
        name, space = one["metadata"]["name"], one["metadata"]["namespace"]
        if name.startswith("trainyard-notebook-"):
            context.kubectl("delete", "pvc", "-n", space, name)
