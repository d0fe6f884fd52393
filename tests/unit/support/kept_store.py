"""A fake store: objects of logs as a collector writes them, and the three calls that their reader makes."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

from trainyard.errors import TrainyardError

NOON = 1_770_000_000_000_000_000  # ns since 1970


def record(text: str, at: int, offset: int | None, stream: str = "stdout") -> dict[str, Any]:
    """A line; `at` in ns after noon."""
    attributes = [{"key": "log.iostream", "value": {"stringValue": stream}}]
    if offset is not None:
        attributes.append({"key": "log.file.record_offset", "value": {"intValue": str(offset)}})
    return {"timeUnixNano": str(NOON + at), "body": {"stringValue": text}, "attributes": attributes}


def batch(*records: dict[str, Any], pod: str = "p", uid: str = "u", container: str = "c", restart: int = 0) -> bytes:
    """An object, compressed as ours are."""
    names = {"pod.name": pod, "pod.uid": uid, "container.name": container, "container.restart_count": str(restart)}
    of = [{"key": f"k8s.{key}", "value": {"stringValue": value}} for key, value in names.items()]
    resource = {"resource": {"attributes": of}, "scopeLogs": [{"logRecords": list(records)}]}
    return gzip.compress(json.dumps({"resourceLogs": [resource]}).encode())


class Kept:
    """A fake store; `objects` is key -> bytes, in the bucket `logs`."""

    def __init__(self, objects: dict[str, bytes]) -> None:
        self.objects = {f"logs/{key}": content for key, content in objects.items()}
        self.asked: list[str] = []

    def folders(self, begun: str) -> list[str]:
        self.asked.append(begun)
        if not begun.startswith("logs/vision/"):
            raise TrainyardError("AccessDenied")
        found = {key[: key.index("/", len(begun))] for key in self.objects if key.startswith(begun)}
        return sorted(name.partition("/")[2] for name in found)

    def list(self, place: str) -> dict[str, int]:
        return {key[len(place) + 1 :]: len(data) for key, data in self.objects.items() if key.startswith(f"{place}/")}

    def tree(self, place: str, folder: Path) -> list[str]:
        names = list(self.list(place))
        for name in names:
            (folder / name).write_bytes(self.objects[f"{place}/{name}"])
        return names
