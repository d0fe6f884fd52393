"""Removes unused results of steps: entries of Argo's caches, and empty caches.

Argo's controllers can do this, too, but only for ConfigMaps in the namespace that they serve; the caches are in the
controllers' namespace, where no member can write.
"""

from __future__ import annotations

import json
import re
from datetime import datetime, timedelta
from typing import Any

from trainyard_agent.api import Api, ApiError, listed, needed
from trainyard_agent.say import PlatformError, say

CACHE = "workflows.argoproj.io/configmap-type=Cache"
AT_ONCE = "10"  # caches, of at most a MiB each, held in memory at a time
UNITS = {"s": "seconds", "m": "minutes", "h": "hours"}


def duration(text: str) -> timedelta:
    """A duration in Go's format, such as 720h or 1h30m. Raises PlatformError."""
    parts = re.findall(r"(\d+)([smh])", text)
    if not parts or "".join(number + unit for number, unit in parts) != text:
        raise PlatformError(f"invalid duration {text!r}: write hours, minutes and seconds, such as 720h or 1h30m")
    return sum((timedelta(**{UNITS[unit]: int(number)}) for number, unit in parts), timedelta())


def unused(entry: str, since: datetime) -> bool:
    """Whether the result was last used before `since`. An entry that can't be read is of no use to Argo either."""
    try:
        return datetime.fromisoformat(json.loads(entry)["lastHitTimestamp"]) < since
    except (ValueError, TypeError, AttributeError, KeyError):
        return True


def clean(api: Api, namespace: str, since: datetime) -> None:
    """One look at all caches of a namespace. Raises PlatformError with the names of those that could not be cleaned.

    A cache that a controller changes meanwhile is left for the next look.
    """
    path = f"/api/v1/namespaces/{namespace}/configmaps"
    failed = []
    with needed("caches of steps can't be listed"):
        for cache in listed(api, path, {"labelSelector": CACHE, "limit": AT_ONCE}):
            try:
                _clean(api, f"{path}/{cache['metadata']['name']}", cache, since)
            except ApiError as error:
                if error.status not in (404, 409):
                    failed.append(f"{cache['metadata']['name']} ({error.message})")
    if failed:
        raise PlatformError(f"caches were not cleaned: {', '.join(failed)}")


def _clean(api: Api, path: str, cache: dict[str, Any], since: datetime) -> None:
    meta, entries = cache["metadata"], cache.get("data") or {}
    kept = {key: entry for key, entry in entries.items() if not unused(entry, since)}
    if not entries or len(kept) == len(entries):  # an empty one is just being created
        return
    if kept:
        api.call("PUT", path, cache | {"apiVersion": "v1", "kind": "ConfigMap", "data": kept})
    else:
        only = {"uid": meta["uid"], "resourceVersion": meta["resourceVersion"]}
        api.call("DELETE", path, {"apiVersion": "v1", "kind": "DeleteOptions", "preconditions": only})
    say(f"cache {meta['name']}: {len(entries) - len(kept)} of {len(entries)} results removed")
