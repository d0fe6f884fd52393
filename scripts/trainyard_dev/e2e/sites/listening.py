"""Runs a one-file program as a server in the cluster, in a namespace without the platform's rules."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from trainyard_dev.e2e.context import Context

START_S = 60


@dataclass(frozen=True)
class Listener:
    """A server: `program`, the path of one that needs only Python, listens on `port` and prints requests as JSON."""

    name: str  # of pod and Service
    program: str
    port: int

    @property
    def namespace(self) -> str:
        """The server's own namespace."""
        return f"trainyard-e2e-{self.name}"

    @property
    def url(self) -> str:
        """The URL for pods."""
        return f"http://{self.name}.{self.namespace}.svc:{self.port}"

    @contextmanager
    def there(self, context: Context) -> Iterator[None]:
        """The server runs while the block runs."""
        program = Path(self.program).read_text()
        labels = {"app": self.name}
        pod = context.pod(self.name, 'exec python3 -c "$PROGRAM"', image=context.image("pipeline"), labels=labels)
        pod["spec"]["containers"][0]["env"] = [{"name": "PROGRAM", "value": program}]
        service = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": self.name}}
        service |= {"spec": {"selector": labels, "ports": [{"port": self.port}]}}
        with context.namespace(self.namespace):
            context.kubectl.apply([pod, service], self.namespace)
            context.wait(f"pod/{self.name}", "condition=Ready", START_S, self.namespace)
            yield

    def heard(self, context: Context) -> list[dict[str, Any]]:
        """The requests, in order."""
        said = context.kubectl("logs", "-n", self.namespace, self.name, check=False).stdout
        return [json.loads(line) for line in said.splitlines() if line.startswith("{")]
