"""A fake world for the agent's usage measurement: an API server with its notes, a clock, and jobs in Prometheus."""

import json
from datetime import UTC, datetime, timedelta
from typing import Any

from prometheus_server import Server, Vector

from trainyard_agent.api import ApiError
from trainyard_agent.usage.jobs import KEY, NAME

START = datetime(2026, 5, 4, 12, 0, 0, tzinfo=UTC)
CONTRACT = {"teams": [{"name": "vision"}]}
MIB = 1 << 20


class Maps:
    """An API server with the ConfigMaps of team and platform."""

    namespace = "trainyard-system"

    def __init__(self) -> None:
        self.texts = {"vision": "", "trainyard-system": ""}
        self.writes: list[str] = []

    def get(self, path: str, query: dict[str, str] | None = None) -> dict[str, Any]:
        if path.startswith("/apis/rbac.authorization.k8s.io/v1/namespaces/") and path.endswith(f"/roles/{NAME}"):
            return {"metadata": {"uid": "role-of-" + path.split("/")[5]}}
        if self._of(path) not in self.texts:
            raise ApiError(403, "may not get configmaps")
        return {"data": {KEY: self.texts[self._of(path)]}}

    def apply(self, path: str, obj: dict[str, Any], *, manager: str) -> dict[str, Any]:
        namespace = self._of(path)
        assert manager == "trainyard-usage"
        assert (obj["kind"], obj["metadata"]["name"], obj["metadata"]["namespace"]) == ("ConfigMap", NAME, namespace)
        assert obj["metadata"]["ownerReferences"][0]["uid"] == f"role-of-{namespace}"
        self.writes.append(namespace)
        self.texts[namespace] = obj["data"][KEY]
        return {}

    def jobs(self, namespace: str = "vision") -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = json.loads(self.texts[namespace])["jobs"]
        return found

    @staticmethod
    def _of(path: str) -> str:
        words = path.split("/")
        assert words[-2:] == ["configmaps", NAME]
        return words[4]


class Clock:
    def __init__(self) -> None:
        self.at = START

    def __call__(self) -> datetime:
        return self.at

    def go(self, seconds: float) -> None:
        self.at += timedelta(seconds=seconds)


def of(pod: str, **more: str) -> dict[str, str]:
    return {"namespace": "vision", "pod": pod, "container": "pytorch", **more}


def runs(prometheus: Server, *pods: str, job: str, begin: float, going: bool, cpu: float = 1.0) -> None:
    """Adds a job to Prometheus: its pods, their start, and their usage."""
    seen = [of(pod, team="vision", job=job, kind="PyTorchJob") for pod in pods]
    used: Vector = [(of(pod), cpu * (1 + index)) for index, pod in enumerate(pods)]
    prometheus.answers = [
        ("^max by .*trainyard_pod_job", [(labels, 1) for labels in seen]),
        ("kube_pod_start_time", [(of(pod), begin + index) for index, pod in enumerate(pods)]),
        ("kube_pod_status_phase", [(of(pod), 1) for pod in pods] if going else []),
        ("quantile_over_time.0.5, rate", [(labels, value * 0.5) for labels, value in used]),
        ("quantile_over_time.0.95, rate", used),
        ("quantile_over_time.0.99, rate", used),
        ("max_over_time.rate", [(labels, value * 1.2) for labels, value in used]),
        ("timestamp", lambda query, at: [({}, at - 7)]),
        ("count_over_time", [(labels, 40) for labels, _ in used]),
        ("memory_working_set", [(labels, value * 512 * MIB) for labels, value in used]),
        ("cfs_throttled", [(labels, 0.25) for labels, _ in used]),
        ("kube_pod_container_resource_requests",
         [(of(pod, resource=name), amount) for pod in pods for name, amount in
          (("cpu", 4), ("memory", 8 << 30), ("nvidia_com_gpu", 2), ("ephemeral_storage", 5))]),
        ("kube_pod_container_resource_limits", [(of(pod, resource="memory"), 8 << 30) for pod in pods]),
        ("DCGM_FI_DEV_GPU_UTIL.*< 1", [(of(pods[0]), 1)]),
        ("DCGM_FI_DEV_GPU_UTIL", [(of(pod), 37.5) for pod in pods]),
        ("DCGM_FI_DEV_FB_USED", [(of(pod), 1024) for pod in pods]),
        ("DCGM_FI_DEV_FB_FREE", [(of(pod), 3072) for pod in pods]),
    ]  # fmt: skip
