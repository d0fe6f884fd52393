"""A fake cluster of a team for tests of `trainyard runs`: workflows, training jobs, pods, gangs, logs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from train_cluster import group, pod, warning

from trainyard.kinds import registry
from trainyard.kube import KubeError

Object = dict[str, Any]
__all__ = ["Team", "entry", "group", "job", "of_job", "pod", "warning", "workflow"]


class Team:
    """Objects by resource, such as `pytorchjobs.kubeflow.org`, core ones by their plural; changes are recorded."""

    namespace, host = "vision", "https://cluster"

    def __init__(self, *jobs: Object, logs: dict[str, list[str]] | None = None, **objects: list[Object]) -> None:
        self.objects: dict[str, list[Object]] = {"workflows.argoproj.io": [], **objects}
        for made in jobs:
            self.objects.setdefault(entry(made).resource, []).append(made)
        self.printed, self.deleted, self.patched = logs or {}, [], []  # type: ignore[var-annotated]
        self.absent: set[str] = set()

    def path(self, version: str, resource: str, name: str = "", **_: Any) -> str:
        group_of, slash, _version = version.partition("/")
        whole = f"{resource}.{group_of}" if slash and not group_of.startswith("scheduling") else resource
        return f"{whole}/{name}" if name else whole

    def path_of(self, obj: Object) -> str:
        return entry(obj).resource

    def list(self, path: str, **_: str) -> list[Object]:
        if path in self.absent:
            raise KubeError("the server has no such kind", status=404)
        return [_bare(one) for one in self.objects.get(path, [])]

    def find(self, path: str) -> Object | None:
        resource, _, name = path.partition("/")
        return next((o for o in self.objects.get(resource, []) if o["metadata"]["name"] == name), None)

    def get(self, path: str) -> Object:
        raise KubeError("not found", status=404)

    def patch(self, path: str, change: Object) -> None:
        self.patched.append((path, change))

    def delete(self, path: str) -> bool:
        self.deleted.append(path)
        return True

    def logs(self, name: str, container: str, *, tail: int | None = None, **_: Any) -> Iterator[bytes]:
        if name not in self.printed:
            raise KubeError("no log", status=404)
        return iter([line.encode() for line in self.printed[name]][-(tail or 1000) :])


def entry(obj: Object) -> registry.Kind:
    """The registry's entry of a job."""
    found = registry.of_object(obj)
    assert found
    return found


def job(name: str, framework: str = "pytorch", created: str = "2026-03-01T10:00:00Z", **more: Any) -> Object:
    """A training job of `trainyard train`; `labels`, `spec` and conditions by their type."""
    kind = registry.of_framework(framework)
    labels = more.pop("labels", {"trainyard.io/job": name})
    spec = more.pop("spec", {"runPolicy": {"schedulingPolicy": {"queue": "vision"}}})
    state = more.pop("state", None)
    conditions = [{"type": key, "status": "True", "message": text} for key, text in more.items()]
    meta = {"name": name, "uid": f"{framework}-{name}", "creationTimestamp": created, "labels": labels}
    status = {"conditions": conditions, **({"state": {"phase": state}} if state else {})}
    return {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": meta, "spec": spec, "status": status}


def of_job(made: Object, role: str, index: int, phase: str, code: int | None = None, **status: Any) -> Object:
    """A pod that a job's operator made."""
    meta, kind = made["metadata"], entry(made)
    found = pod(f"{meta['name']}-{role}-{index}", phase, code, job=meta["name"])
    found["metadata"]["labels"] |= {
        "training.kubeflow.org/replica-type": role,
        "training.kubeflow.org/replica-index": str(index),
    }
    owner = {"apiVersion": kind.api_version, "kind": kind.kind, "name": meta["name"], "uid": meta["uid"]}
    found["metadata"]["ownerReferences"] = [owner]
    found["spec"] |= {"containers": [{"name": kind.container}]}
    found["status"]["containerStatuses"][0]["name"] = kind.container
    found["status"] |= status
    return found


def workflow(name: str, state: str = "Running", created: str = "2026-03-01T09:00:00Z", **node: Any) -> Object:
    """A run of a pipeline with one step."""
    root = {"id": name, "name": name, "displayName": name, "type": "DAG", "phase": state}
    step = {"id": "n", "name": f"{name}.train", "displayName": "train", "type": "Pod", "phase": state,
            "boundaryID": name, "startedAt": created, **node}  # fmt: skip
    labels = {"trainyard.io/pipeline": "mnist", "trainyard.io/experiment": "first"}
    meta = {"name": name, "namespace": "vision", "uid": name, "creationTimestamp": created, "labels": labels}
    return {"metadata": meta, "spec": {}, "status": {"phase": state, "startedAt": created,
            "nodes": {name: root, "n": step}}}  # fmt: skip


def _bare(obj: Object) -> Object:
    """The object as an item of a list: without kind."""
    return {key: value for key, value in obj.items() if key not in ("apiVersion", "kind")}
