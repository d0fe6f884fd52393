"""Values with teams and data, and a look into what the chart makes of them."""

from __future__ import annotations

import base64
from typing import Any

from trainyard.chart import helm

TEAMS = [{"name": "vision", "gid": 20001}, {"name": "speech", "gid": 20002}]
MNIST = {"name": "mnist", "bucket": "datasets", "prefix": "shared/mnist"}
Objects = list[dict[str, Any]]


def contract(storage: dict[str, Any] | None = None, **more: Any) -> dict[str, Any]:
    return {"global": {"contract": {"teams": TEAMS, "storage": storage or {}}}} | more


def one(objects: Objects, kind: str, name: str, namespace: str = "trainyard-system") -> dict[str, Any]:
    found = [
        obj
        for obj in objects
        if (obj["kind"], obj["metadata"]["name"], obj["metadata"].get("namespace", namespace))
        == (kind, name, namespace)
    ]
    assert len(found) == 1, (kind, name, namespace, len(found))
    return found[0]


def text(secret: dict[str, Any], key: str) -> str:
    held = secret.get("stringData", {}).get(key)
    return str(held) if held is not None else base64.b64decode(secret["data"][key]).decode()


def container(obj: dict[str, Any]) -> dict[str, Any]:
    return helm.pod_specs(obj)[0]["containers"][0]
