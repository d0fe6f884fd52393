"""Argo's real controller on the tests' API server, with the account, rights and settings of the chart."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from trainyard.errors import TrainyardError
from trainyard_dev import tools
from trainyard_dev.apiserver import ApiServer
from trainyard_dev.apiserver.processes import Server

NAME = "trainyard-workflow-controller"
READY_S = 180.0
STARTED = "Manager initialized successfully"

Objects = list[dict[str, Any]]


def quiet(objects: Objects) -> None:
    """Disables controllers' metrics ports, so that several can run on one machine."""
    settings = next(one for one in objects if one["kind"] == "ConfigMap" and one["metadata"]["name"] == NAME)
    config = yaml.safe_load(settings["data"]["config"]) | {"metricsConfig": {"enabled": False}}
    settings["data"]["config"] = yaml.safe_dump(config)


class Controller:
    """The program of one Deployment; `restart` replaces it as a killed pod is replaced.

    Args:
        name: of the Deployment and, unless `account` is given, its account.
        env: variables in addition to the Deployment's, or instead of them.
        before: a command to run the program's with, such as one that limits it.
    """

    def __init__(
        self, server: ApiServer, objects: Objects, name: str, folder: Path, env: Mapping[str, str] | None = None,
        before: Sequence[str] = (), account: str = "",
    ) -> None:  # fmt: skip
        found = [one for one in objects if one["kind"] == "Deployment" and one["metadata"]["name"] == name]
        if not found:
            raise TrainyardError(f"the chart has no Deployment {name}")
        self.account, self.namespace = account or name, found[0]["metadata"]["namespace"]
        container = found[0]["spec"]["template"]["spec"]["containers"][0]
        self._folder, self._server, self._count, self.before = folder, server, 0, tuple(before)
        folder.mkdir(parents=True, exist_ok=True)
        self._args = [*container["args"], "--kubeconfig", str(self._kubeconfig()), "--namespace", self.namespace]
        self._env = {one["name"]: one["value"] for one in container["env"]} | dict(env or {})
        self._process: Server | None = None

    @property
    def log(self) -> str:
        """The program's output since its last start."""
        return self._log().read_text(errors="replace")

    @property
    def pid(self) -> int:
        """The process's id."""
        assert self._process
        return self._process.pid

    @property
    def ended(self) -> bool:
        """Whether the program has ended by itself."""
        assert self._process
        return self._process.ended

    def start(self, wait: bool = True) -> None:
        """Starts it; with `wait`, waits until it has seen all objects. Raises TrainyardError when it ends at once."""
        self._count += 1
        argv = [*self.before, tools.binary("workflow-controller"), *self._args]
        self._process = Server(argv, self._log(), self._env)
        if wait:
            self._process.wait(lambda: STARTED in self.log, READY_S)

    def kill(self) -> None:
        """Kills the program."""
        assert self._process
        self._process.stop()

    def _log(self) -> Path:
        return self._folder / f"controller-{self._count}.log"

    def _kubeconfig(self) -> Path:
        config = yaml.safe_load(self._server.kubeconfig.read_text())
        config["users"][0]["user"]["as"] = f"system:serviceaccount:{self.namespace}:{self.account}"
        groups = ["system:serviceaccounts", f"system:serviceaccounts:{self.namespace}", "system:authenticated"]
        config["users"][0]["user"]["as-groups"] = groups
        path = self._folder / "controller.kubeconfig"
        path.write_text(yaml.safe_dump(config))
        return path
