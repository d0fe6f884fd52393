"""Two teams as values, and how to find an object of theirs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

from trainyard.chart import helm

SYSTEM = helm.NAMESPACE
Objects = list[dict[str, Any]]

VISION = {
    "name": "vision",
    "description": "Camera models",
    "gid": 20001,
    "members": {"groups": ["vision-members"], "users": ["ada"]},
    "viewers": {"groups": ["vision-viewers"]},
    "queue": {"parent": "department", "weight": 3, "reclaimable": False},
    "queues": ["training"],
    "priorityClasses": ["training-low", "training-high"],
    "maxGpusPerJob": 4,
    "quota": {"all": {"pods": 50, "gpus": 8}, "training-high": {"gpus": 2}, "training-low": {}},
    "storage": {"maxClaim": "20Gi"},
    "egress": [{"to": [{"ipBlock": {"cidr": "192.0.2.1/32"}}]}],
}
SPEECH = {"name": "speech", "gid": 20002}
EXTERNAL = {"mode": "external", "endpoint": "https://s3.example"}
QUEUES = [{"name": name, "weight": 1, "reclaimable": True} for name in ("training", "department")]


def write(folder: Path, *teams: dict[str, Any], **contract: Any) -> Path:
    """A values file with these teams and the shared queues training and department."""
    file = folder / "values.yaml"
    file.write_text(yaml.safe_dump({"global": {"contract": {"teams": list(teams), "queues": QUEUES, **contract}}}))
    return file


def find(objects: Objects, kind: str, name: str, namespace: str | None = None) -> dict[str, Any]:
    """The one object of this kind and name."""
    [found] = [
        obj for obj in objects
        if obj["kind"] == kind and obj["metadata"]["name"] == name and obj["metadata"].get("namespace") == namespace
    ]  # fmt: skip
    return found
