"""A fake of a team's namespace: objects as the API would list them."""

from __future__ import annotations

from typing import Any

from trainyard.kube import KubeError


class Objects:
    """Lists by the plural of their kind; one that is an error is raised."""

    namespace = "vision"

    def __init__(self, **objects: Any) -> None:
        self.objects = objects

    def path(self, version: str, resource: str, name: str = "", **_: Any) -> str:
        return f"{resource}/{name}" if name else resource

    def list(self, path: str, **_: Any) -> list[Any]:
        there = self.objects.get(path, [])
        if isinstance(there, Exception):
            raise there
        return list(there)

    def find(self, path: str) -> Any:
        plural, _, name = path.partition("/")
        return next((one for one in self.list(plural) if one["metadata"]["name"] == name), None)

    def get(self, path: str) -> Any:
        if found := self.find(path):
            return found
        raise KubeError("not found", status=404)
