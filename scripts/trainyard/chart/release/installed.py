"""An installed release, queried through Helm: its objects, and those that another package would install."""

import json
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from trainyard import programs
from trainyard.chart.helm import NAMESPACE, RELEASE, parse, plain
from trainyard.errors import TrainyardError
from trainyard.kube.kubectl import Kubectl
from trainyard.shell import CommandError, run

Objects = list[dict[str, Any]]
HOOK = "helm.sh/hook"
# Hints by phrases in Helm's messages.
HINTS = {
    "cluster unreachable": "set KUBECONFIG to the kubeconfig of a reachable cluster",
    "release: not found": "see `helm list -A` for what is installed",
}


@dataclass(frozen=True)
class Installed:
    """A release in a cluster."""

    kubectl: Kubectl
    name: str = RELEASE
    namespace: str = NAMESPACE

    def helm(self, *args: str | Path, timeout: float = 120) -> str:
        """Runs helm for the release's cluster and namespace. Raises TrainyardError with Helm's own message."""
        chosen = ["--kubeconfig", str(self.kubectl.kubeconfig)] if self.kubectl.kubeconfig else []
        try:
            return run([programs.find("helm"), *chosen, "-n", self.namespace, *args], timeout=timeout).stdout
        except CommandError as error:
            said = plain(error.output)
            hint = next((hint for sign, hint in HINTS.items() if sign in said), "")
            raise TrainyardError(said, where=f"release {self.name}", hint=hint) from None

    def metadata(self) -> dict[str, Any]:
        """Chart version, revision and status. Raises TrainyardError if the release does not exist."""
        return json.loads(self.helm("get", "metadata", self.name, "-o", "json"))

    def objects(self) -> Objects:
        """All objects of the installed revision, including hooks."""
        return parse(self.helm("get", "manifest", self.name)) + parse(self.helm("get", "hooks", self.name))

    def planned(self, package: Path, values: Sequence[Path] = ()) -> Objects:
        """Objects that `helm upgrade` to a package would install, rendered with lookups in the cluster; a dry run.

        Args:
            values: files as for `helm upgrade --values`; if none are given, the release's own values are used.
        """
        files = list(values)
        with tempfile.TemporaryDirectory() as folder:
            if not files:
                files = [Path(folder) / "values.yaml"]
                files[0].write_text(self.helm("get", "values", self.name, "-o", "yaml"))
            flags = [word for file in files for word in ("--values", str(file))]
            server = json.loads(self.kubectl("version", "-o", "json").stdout)["serverVersion"]["gitVersion"]
            flags += ["--is-upgrade", "--dry-run=server", "--kube-version", server]
            return parse(self.helm("template", self.name, package, *flags))
