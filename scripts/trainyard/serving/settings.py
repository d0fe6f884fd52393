"""Values from which a model in service was rendered, stored on its Deployment: options not given keep them."""

import json
from collections.abc import Mapping
from typing import Any

NOTE = "trainyard.io/serve-settings"


def read(deployment: Mapping[str, Any] | None) -> dict[str, Any]:
    """Values stored on a Deployment; {} without a Deployment or values."""
    noted = ((deployment or {}).get("metadata", {}).get("annotations") or {}).get(NOTE, "")
    try:
        found = json.loads(noted) if noted else {}
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def text(values: Mapping[str, Any]) -> str:
    """The values as stored text."""
    return json.dumps(values, sort_keys=True, separators=(",", ":"))
