"""Values with teams and data."""

from __future__ import annotations

import base64
from typing import Any

TEAMS = [{"name": "vision", "gid": 20001}, {"name": "speech", "gid": 20002}]
MNIST = {"name": "mnist", "bucket": "datasets", "prefix": "shared/mnist"}


def contract(storage: dict[str, Any] | None = None, **more: Any) -> dict[str, Any]:
    return {"global": {"contract": {"teams": TEAMS, "storage": storage or {}}}} | more


def text(secret: dict[str, Any], key: str) -> str:
    held = secret.get("stringData", {}).get(key)
    return str(held) if held is not None else base64.b64decode(secret["data"][key]).decode()
