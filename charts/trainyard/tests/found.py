"""Helpers to find one of the chart's objects, and parts of it."""

from __future__ import annotations

import json
from typing import Any

from rendering import Objects, one
from trainyard.chart import helm

SYSTEM = helm.NAMESPACE


def named(objects: Objects) -> dict[tuple[str, str, str], dict[str, Any]]:
    """All objects by kind, namespace and name."""
    return {(obj["kind"], obj["metadata"].get("namespace", ""), obj["metadata"]["name"]): obj for obj in objects}


def pod_of(objects: Objects, kind: str, name: str, namespace: str = "") -> dict[str, Any]:
    """The pod spec of one object."""
    return helm.pod_specs(one(objects, kind, name, namespace))[0]


def container(objects: Objects, kind: str, name: str, namespace: str = "") -> dict[str, Any]:
    """The first container of one object's pods."""
    found: dict[str, Any] = pod_of(objects, kind, name, namespace)["containers"][0]
    return found


def published(objects: Objects, name: str = "contract", key: str = "contract.json") -> Any:
    """JSON in one of the platform's ConfigMaps: the contract, or another's."""
    return json.loads(one(objects, "ConfigMap", f"trainyard-{name}", SYSTEM)["data"][key])


def plan_of(objects: Objects, of: str = "setup") -> Any:
    """The plan of the setup job, or of another."""
    return published(objects, of, "plan.json")


def contract_of(objects: Objects) -> dict[str, Any]:
    """The contract as YAML, as programs read it from a file."""
    return helm.parse(one(objects, "ConfigMap", "trainyard-contract")["data"]["contract.yaml"])[0]
