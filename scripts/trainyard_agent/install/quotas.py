"""Quotas that count objects of kinds from CRDs.

Kubernetes refuses objects that a quota counts but has no usage for, and its controller discovers new kinds every half
minute. A quota created too early gets its usage minutes later; created again, it has it at once.
"""

from __future__ import annotations

import functools
import time
from typing import Any

from trainyard_agent.api import Api, ApiError, delete
from trainyard_agent.clock import Clock

MANAGER = "trainyard-setup"
OWNER = "team-counts"  # the chart's quota in the same namespace, which owns this one
FIGURES_S = 3.0  # a quota whose kinds are known has its usage by then


def path_of(quota: dict[str, Any]) -> str:
    """The quota's path in the API."""
    meta = quota["metadata"]
    return f"/api/v1/namespaces/{meta['namespace']}/resourcequotas/{meta['name']}"


def lacking(api: Api, quota: dict[str, Any]) -> str:
    """The first resource of the quota without usage, or the API's error; "" when all have usage."""
    try:
        used = (api.get(path_of(quota)).get("status") or {}).get("used") or {}
    except ApiError as error:
        return error.message
    return next((name for name in sorted(quota["spec"]["hard"]) if name not in used), "")


def apply(api: Api, quota: dict[str, Any], pause: float = 0.2) -> str:
    """Apply one quota; "" once it counts. A quota that doesn't is deleted again, and the reason returned."""
    meta = quota["metadata"]
    try:
        beside = api.get(path_of({"metadata": {**meta, "name": OWNER}}))
        owner = {"apiVersion": "v1", "kind": "ResourceQuota", "name": OWNER, "uid": beside["metadata"]["uid"]}
        api.apply(path_of(quota), {**quota, "metadata": {**meta, "ownerReferences": [owner]}}, manager=MANAGER)
    except ApiError as error:
        return error.message
    end = time.monotonic() + FIGURES_S
    while missing := lacking(api, quota):
        if time.monotonic() > end:
            return delete(api, path_of(quota)) or f"{missing.removeprefix('count/')} are not counted yet"
        time.sleep(pause)
    return ""


def apply_all(api: Api, quotas: list[dict[str, Any]], clock: Clock) -> None:
    """Apply every quota. Raises PlatformError when Kubernetes doesn't count one of its kinds in time."""
    for quota in quotas:
        clock.wait(f"the quota of {quota['metadata']['namespace']}", functools.partial(apply, api, quota))
