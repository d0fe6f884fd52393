"""A cluster whose pods are processes on this machine, with a real store."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import replace
from typing import IO, Any

from servers import Server, env_of
from trainyard.kube import KubeError
from trainyard.kube.streams import Done
from trainyard.paths import ROOT
from trainyard_agent.store.connect import Access


class Cluster:
    """Its pods have the keys that `keys` has for their namespace, else those of the store's root.

    `breaks`: so many streams end early, after `after` bytes. `away`: for so many the store is not there. `closed`:
    namespaces in which the caller may make no pod.
    """

    def __init__(self, server: Server, namespace: str = "vision") -> None:
        self.access, self.jobs, self.breaks, self.away, self.ran = server.root, [], 0, 0, []  # type: ignore[var-annotated]
        self.namespace, self.after = namespace, 0
        self.keys: dict[str, Access] = {}
        self.closed: tuple[str, ...] = ()
        self.claims: dict[str, dict[str, Any]] = {}
        self.made: list[dict[str, Any]] = []
        self.pods: list[dict[str, Any]] = [{"metadata": {"name": "transfer-x"}, "status": {"phase": "Running"}}]
        self.events: list[dict[str, Any]] = []

    def path(self, version: str, resource: str, name: str = "") -> str:
        return f"{resource}/{name}" if name else resource

    def find(self, path: str) -> dict[str, Any] | None:
        return self.claims.get(path.rpartition("/")[2])

    def path_of(self, obj: dict[str, Any]) -> str:
        return "jobs"

    def create(self, obj: dict[str, Any]) -> None:
        if obj["metadata"]["namespace"] in self.closed:
            raise KubeError('jobs.batch is forbidden: User "ada" cannot create resource "jobs"', status=403)
        self.made.append(obj)
        self.jobs.append(obj["metadata"]["name"])

    def delete(self, path: str) -> bool:
        self.jobs.remove(path.rpartition("/")[2])
        return True

    def list(self, path: str, **_: str) -> list[dict[str, Any]]:
        return self.events if path == "events" else self.pods

    def exec(
        self,
        name: str,
        command: Sequence[str],
        *,
        stdin: IO[bytes] | None = None,
        stdout: IO[bytes] | None = None,
        timeout_s: float | None = None,
    ) -> Done:
        self.ran.append(command[4])
        data, access = stdin.read() if stdin else b"", self.keys.get(self.namespace, self.access)
        if self.breaks:
            self.breaks -= 1
            if self.after:
                self._pod(command, data[: self.after], access)
            raise KubeError("the connection to the pod broke")
        if self.away:
            self.away -= 1
            access = replace(access, endpoint="http://127.0.0.1:1")
        ran = self._pod(command, data, access)
        if stdout:
            stdout.write(ran.stdout)
        return Done(ran.returncode, b"" if stdout else ran.stdout, ran.stderr.decode())

    def _pod(self, command: Sequence[str], data: bytes, to: Access) -> subprocess.CompletedProcess[bytes]:
        """The program of the pod."""
        env = {"PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT / "scripts"), **env_of(to)}
        return subprocess.run([sys.executable, *command[1:]], env=env, input=data, capture_output=True, check=False)
