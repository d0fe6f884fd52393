"""Wrapper of kubectl for one cluster."""

import json
import re
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from trainyard import programs
from trainyard.errors import TrainyardError
from trainyard.shell import run


class Kubectl:
    """Runs the pinned kubectl with one kubeconfig, or the user's own; returns text or objects."""

    def __init__(self, kubeconfig: Path | None = None) -> None:
        self.kubeconfig = kubeconfig

    def argv(self, *args: str | Path) -> list[str]:
        """The whole command line, for callers that start the process themselves."""
        chosen = ["--kubeconfig", str(self.kubeconfig)] if self.kubeconfig else []
        return [str(programs.find("kubectl")), *chosen, *map(str, args)]

    def __call__(
        self, *args: str | Path, check: bool = True, timeout: float | None = 120, input: str | None = None
    ) -> subprocess.CompletedProcess[str]:
        """Runs one kubectl command."""
        return run(self.argv(*args), check=check, timeout=timeout, input=input)

    def get(self, *args: str) -> list[dict[str, Any]]:
        """`kubectl get … -o json` as a list of objects, even if a single object is named."""
        answer = json.loads(self("get", *args, "-o", "json").stdout)
        return answer["items"] if answer["kind"].endswith("List") else [answer]

    def find(self, *args: str) -> dict[str, Any] | None:
        """One named object, or None if it does not exist."""
        answer = self("get", *args, "-o", "json", "--ignore-not-found")
        return json.loads(answer.stdout) if answer.stdout.strip() else None

    def apply(self, objects: list[dict[str, Any]], namespace: str) -> None:
        """Applies objects to a namespace."""
        listed = {"apiVersion": "v1", "kind": "List", "items": objects}
        self("apply", "-n", namespace, "-f", "-", input=json.dumps(listed))

    @contextmanager
    def forward(self, target: str, port: int, namespace: str) -> Iterator[int]:
        """Yields a port of 127.0.0.1 that is forwarded to `target` (`pod/x`, `service/x`) while the block runs."""
        argv = self.argv("port-forward", "-n", namespace, target, f":{port}")
        with subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as process:
            try:
                line = process.stdout.readline() if process.stdout else ""
                local = re.search(r"127\.0\.0\.1:(\d+)", line)
                if not local:
                    raise TrainyardError(f"the port-forward to {target} failed: {line.strip()}")
                yield int(local[1])
            finally:
                process.terminate()
