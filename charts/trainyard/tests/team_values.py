"""Two teams as values."""

from __future__ import annotations

from typing import Any

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
    "fill": {"deadlineSeconds": 7200, "keepSeconds": 3600},
    "egress": [{"to": [{"ipBlock": {"cidr": "192.0.2.1/32"}}]}],
}
SPEECH = {"name": "speech", "gid": 20002}
EXTERNAL = {"mode": "external", "endpoint": "https://s3.example"}
QUEUES = [{"name": name, "weight": 1, "reclaimable": True} for name in ("training", "department")]


def values(*teams: dict[str, Any], **contract: Any) -> dict[str, Any]:
    """Values with these teams and the shared queues training and department."""
    return {"global": {"contract": {"teams": list(teams), "queues": QUEUES, **contract}}}
