"""A fake cluster that holds some objects, to be read by name or label."""

from __future__ import annotations

from typing import Any

from trainyard.kube.client import Kube

Object = dict[str, Any]


class Held(Kube):
    """Answers from a list of objects; paths are those of the real client."""

    def __init__(self, *objects: Object) -> None:
        self.objects, self.namespace = objects, "default"

    def list(self, path: str, **query: str) -> list[Object]:
        """Objects of the path's kind with the requested label."""
        key, _, value = query.get("labelSelector", "").partition("=")
        found = [obj for obj in self.objects if f"{obj['kind'].lower()}s" == path.rsplit("/", 1)[-1]]
        return [obj for obj in found if not key or obj["metadata"].get("labels", {}).get(key) == value]

    def find(self, path: str, **query: str) -> Object | None:
        """The object at the path, or None."""
        path, _, name = path.rpartition("/")
        return next((obj for obj in self.list(path) if obj["metadata"]["name"] == name), None)
