"""The values that a model in service was rendered from, noted on its Deployment: what is not said stays as it was."""

import json
from collections.abc import Mapping
from typing import Any

NOTE = "trainyard.io/serve-settings"


def read(deployment: Mapping[str, Any] | None) -> dict[str, Any]:
    """Those of a Deployment; {} for none, or one that says nothing."""
    noted = ((deployment or {}).get("metadata", {}).get("annotations") or {}).get(NOTE, "")
    try:
        found = json.loads(noted) if noted else {}
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def text(values: Mapping[str, Any]) -> str:
    """As they are noted."""
    return json.dumps(values, sort_keys=True, separators=(",", ":"))
