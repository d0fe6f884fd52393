"""A fake cluster for tests of `trainyard train`: jobs, pods, gangs and warnings."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from trainyard.kube import KubeError

VALUES = {"gpuImages": "cpu", "teams": [{"name": "speech", "gid": 20002, "maxGpusPerJob": 4}]}
Object = dict[str, Any]


class Cluster:
    """A fake cluster that answers with one snapshot after the other; the last one stays."""

    namespace, begun = "speech", False

    def __init__(self, *polls: Object, logs: dict[str, list[str]] | None = None) -> None:
        self.polls, self.at, self.printed, self.deleted, self.created = list(polls), -1, logs or {}, [], []  # type: ignore[var-annotated]

    def path(self, version: str, resource: str, name: str = "", **_: str) -> str:
        return resource

    def path_of(self, obj: Object) -> str:
        return obj["kind"]

    def find(self, path: str) -> Object | None:
        self.begun = "Job/" in path  # else with pods
        self.at += self.begun
        now = self._now()
        if isinstance(now.get("job"), Exception):
            raise now["job"]
        return now.get("job")

    def list(self, path: str, **_: str) -> list[Object]:
        if path == "pods":
            self.at, self.begun = self.at + (not self.begun), False
        return self._now().get(path, [])

    def _now(self) -> Object:
        return self.polls[max(0, min(self.at, len(self.polls) - 1))]

    def logs(self, pod: str, container: str, **_: Any) -> Iterator[bytes]:
        if pod not in self.printed:
            raise KubeError("no log", status=404)
        return iter(line.encode() for line in self.printed[pod])

    def create(self, obj: Object, *, dry_run: bool = False) -> Object:
        if obj["kind"] == "SelfSubjectReview":
            return {"status": {"userInfo": {"username": "ada"}}}
        self.created.append((obj["kind"], dry_run))
        return obj

    def delete(self, path: str) -> bool:
        self.deleted.append(path)
        return True


def state(**conditions: str) -> Object:
    listed = [{"type": kind, "status": "True", "message": text} for kind, text in conditions.items()]
    return {"metadata": {"name": "digits-abc", "uid": "u1"}, "status": {"conditions": listed}}


def pod(name: str, phase: str, code: int | None = None, finished: str = "1", job: str = "digits-abc") -> Object:
    """A pod of a job."""
    ended = {"terminated": {"exitCode": code, "finishedAt": finished}}
    running = {"running": {}} if phase == "Running" else {}
    one = {"name": "pytorch", "state": running if code is None else ended}
    status = {"phase": phase, "containerStatuses": [one]}
    labels = {"trainyard.io/job": job}
    return {
        "metadata": {"name": name, "uid": name, "labels": labels},
        "spec": {"nodeName": f"node-{name[-1]}"},
        "status": status,
    }


def group(name: str, phase: str, created: str, message: str = "") -> Object:
    conditions = [{"type": "Unschedulable", "status": "True", "message": message}] if message else []
    meta = {"name": name, "creationTimestamp": created}
    return {"metadata": meta, "spec": {"queue": "speech"}, "status": {"phase": phase, "conditions": conditions}}


def warning(name: str, kind: str, reason: str, message: str) -> Object:
    return {"involvedObject": {"name": name, "kind": kind}, "reason": reason, "message": message}
