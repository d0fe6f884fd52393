"""A program of one file as a server in the cluster, in a namespace that no rule of the platform's concerns."""

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
    """`program`, the path of one that needs only Python, serves at `port` and prints what it hears as lines of JSON."""

    name: str  # of pod and Service
    program: str
    port: int

    @property
    def namespace(self) -> str:
        """Its own."""
        return f"trainyard-e2e-{self.name}"

    @property
    def url(self) -> str:
        """As pods reach it."""
        return f"http://{self.name}.{self.namespace}.svc:{self.port}"

    @contextmanager
    def there(self, context: Context) -> Iterator[None]:
        """It serves."""
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
        """What it heard, in its order."""
        said = context.kubectl("logs", "-n", self.namespace, self.name, check=False).stdout
        return [json.loads(line) for line in said.splitlines() if line.startswith("{")]
