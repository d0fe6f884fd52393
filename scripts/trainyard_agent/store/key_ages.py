"""The age of each team's key for the object store, for monitoring, which may not read Secrets.

`s3-keys` reads the teams' Secrets anyway. It writes the times, and nothing else from them, into a ConfigMap.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from trainyard_agent.api import Api, needed

NAME = "trainyard-keys"
SINCE = "trainyard.io/key-since"  # annotation of a team's Secret
MANAGER = "trainyard-s3-keys"


def since(secret: Mapping[str, Any]) -> str:
    """When the key was written to a Secret, in Kubernetes' format; the Secret's creation, if no release noted it."""
    meta = secret.get("metadata") or {}
    return str((meta.get("annotations") or {}).get(SINCE) or meta.get("creationTimestamp") or "")


def publish(api: Api, times: Mapping[str, str], teams: list[str]) -> None:
    """Writes the teams' times; removes names that are no longer teams. Raises PlatformError."""
    path = f"/api/v1/namespaces/{api.namespace}/configmaps/{NAME}"
    with needed(f"ages of keys can't be kept in ConfigMap {NAME}"):
        held = api.get(path).get("data") or {}
        data: dict[str, str | None] = {**dict.fromkeys(set(held) - set(teams)), **times}
        if any(held.get(team) != at for team, at in data.items()):
            api.merge(path, {"data": data}, manager=MANAGER)
