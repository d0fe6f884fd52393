"""An installed release, asked through Helm: what it has, and what another package would make of it."""

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
# What to do, by words of Helm's.
HINTS = {
    "cluster unreachable": "set KUBECONFIG to a cluster that answers",
    "release: not found": "see `helm list -A` for what is installed",
}


@dataclass(frozen=True)
class Installed:
    """One release on one cluster."""

    kubectl: Kubectl
    name: str = RELEASE
    namespace: str = NAMESPACE

    def helm(self, *args: str | Path, timeout: float = 120) -> str:
        """Run helm on the release's cluster and in its namespace. Raises TrainyardError with Helm's own words."""
        chosen = ["--kubeconfig", str(self.kubectl.kubeconfig)] if self.kubectl.kubeconfig else []
        try:
            return run([programs.find("helm"), *chosen, "-n", self.namespace, *args], timeout=timeout).stdout
        except CommandError as error:
            said = plain(error.output)
            hint = next((hint for sign, hint in HINTS.items() if sign in said), "")
            raise TrainyardError(said, where=f"release {self.name}", hint=hint) from None

    def metadata(self) -> dict[str, Any]:
        """Chart version, revision and status. Raises TrainyardError when there is no such release."""
        return json.loads(self.helm("get", "metadata", self.name, "-o", "json"))

    def objects(self) -> Objects:
        """Everything of the installed revision, hooks included."""
        return parse(self.helm("get", "manifest", self.name)) + parse(self.helm("get", "hooks", self.name))

    def planned(self, package: Path, values: Sequence[Path] = ()) -> Objects:
        """What `helm upgrade` to a package would install, rendered with the cluster's own answers; changes nothing.

        Args:
            values: files as for `helm upgrade --values`; without any, the release's own values are used again.
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
