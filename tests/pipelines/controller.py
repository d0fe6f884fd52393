"""Argo's real controller on the tests' API server, with the account, rights and settings that the chart gives it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import yaml

from trainyard_dev import tools
from trainyard_dev.apiserver import ApiServer
from trainyard_dev.apiserver.processes import Server

NAME = "trainyard-workflow-controller"
# A machine for tests can look more often than a cluster should.
FASTER = {"DEFAULT_REQUEUE_TIME": "100ms"}
READY_S = 180.0


def quiet(objects: list[dict[str, Any]]) -> None:
    """Keeps the controller from its port for figures, so that several test runs fit on one machine."""
    settings = next(one for one in objects if one["kind"] == "ConfigMap" and one["metadata"]["name"] == NAME)
    config = yaml.safe_load(settings["data"]["config"]) | {"metricsConfig": {"enabled": False}}
    settings["data"]["config"] = yaml.safe_dump(config)


class Controller:
    """The running program; `restart` is what a killed pod's replacement is."""

    def __init__(self, server: ApiServer, objects: list[dict[str, Any]], folder: Path) -> None:
        deployment = next(one for one in objects if one["kind"] == "Deployment" and one["metadata"]["name"] == NAME)
        self.namespace = deployment["metadata"]["namespace"]
        container = deployment["spec"]["template"]["spec"]["containers"][0]
        self._folder, self._server, self._count = folder, server, 0
        self._args = [*container["args"], "--kubeconfig", str(self._kubeconfig()), "--namespace", self.namespace]
        self._env = {one["name"]: one["value"] for one in container["env"]} | FASTER
        self._process: Server | None = None

    @property
    def log(self) -> str:
        """What it has said since its last start."""
        return self._log().read_text(errors="replace")

    def start(self) -> None:
        """Starts it and waits until it has seen what is there."""
        self._count += 1
        self._process = Server([tools.binary("workflow-controller"), *self._args], self._log(), self._env)
        self._process.wait(lambda: "Manager initialized successfully" in self.log, READY_S)

    def kill(self) -> None:
        """Ends it without a word."""
        assert self._process
        self._process.stop()

    def _log(self) -> Path:
        return self._folder / f"controller-{self._count}.log"

    def _kubeconfig(self) -> Path:
        config = yaml.safe_load(self._server.kubeconfig.read_text())
        config["users"][0]["user"]["as"] = f"system:serviceaccount:{self.namespace}:{NAME}"
        groups = ["system:serviceaccounts", f"system:serviceaccounts:{self.namespace}", "system:authenticated"]
        config["users"][0]["user"]["as-groups"] = groups
        path = self._folder / "controller.kubeconfig"
        path.write_text(yaml.safe_dump(config))
        return path


@contextmanager
def running(server: ApiServer, objects: list[dict[str, Any]], folder: Path) -> Iterator[Controller]:
    """Runs it for the time of the body."""
    controller = Controller(server, objects, folder)
    controller.start()
    try:
        yield controller
    finally:
        controller.kill()
