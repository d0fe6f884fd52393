"""The few calls that are made of the Kubernetes API: Secrets and pods of teams, and ConfigMaps."""

import base64
from datetime import UTC, datetime, timedelta
from typing import Any

from trainyard_agent.api import ApiError

KEY = "LOGWRITER0ABCDEFGHIJ", "log-writer-secret-key"  # of who writes logs


def pod(name: str, made: datetime, *, phase: str = "Running", secret: str = "trainyard-s3") -> dict[str, Any]:
    """A pod that takes a key of a Secret into its environment."""
    env = {"name": "S3_ACCESS_KEY", "valueFrom": {"secretKeyRef": {"name": secret, "key": "access-key"}}}
    return {
        "metadata": {"name": name, "creationTimestamp": made.strftime("%Y-%m-%dT%H:%M:%SZ")},
        "spec": {"containers": [{"name": "main", "env": [env]}]},
        "status": {"phase": phase},
    }


def ago(**span: float) -> datetime:
    return datetime.now(UTC) - timedelta(**span)


class FakeApi:
    """A cluster with these teams; `secrets[team]` is what its Secret holds, as Helm makes it: without keys."""

    namespace = "trainyard-system"

    def __init__(self, *teams: str) -> None:
        self.secrets: dict[str, dict[str, str]] = {team: {"region": "us-east-1"} for team in teams}
        self.notes: dict[str, dict[str, str]] = {team: {} for team in teams}
        self.pods: dict[str, list[dict[str, Any]]] = {}
        self.configmaps: dict[str, dict[str, str]] = {}
        self.applied: list[dict[str, Any]] = []

    def get(self, path: str, query: dict[str, str] | None = None) -> dict[str, Any]:
        _, namespace, kind, *name = path.removeprefix("/api/v1/").split("/")
        if kind == "pods":
            return {"items": self.pods.get(namespace, [])}
        if kind == "configmaps":
            return {"data": self.configmaps[name[0]]}
        assert (kind, name) == ("secrets", ["trainyard-s3"])
        if namespace not in self.secrets:
            raise ApiError(404, f'namespaces "{namespace}" not found')
        data = {key: base64.b64encode(value.encode()).decode() for key, value in self.secrets[namespace].items()}
        return {"metadata": {"annotations": self.notes[namespace], "resourceVersion": "1"}, "data": data}

    def merge(self, path: str, patch: dict[str, Any], *, manager: str) -> dict[str, Any]:
        _, namespace, kind, name = path.removeprefix("/api/v1/").split("/")
        if kind == "configmaps":
            self.configmaps[name] |= patch["data"]
            return {}
        assert (kind, name) == ("secrets", "trainyard-s3")
        for note, value in patch["metadata"].get("annotations", {}).items():
            self.notes[namespace].pop(note, None)
            if value is not None:
                self.notes[namespace][note] = value
        self.secrets[namespace] |= {
            key: base64.b64decode(value).decode() for key, value in patch.get("data", {}).items()
        }
        return self.get(path)

    def apply(self, path: str, obj: dict[str, Any], *, manager: str) -> None:
        self.applied.append(obj)
