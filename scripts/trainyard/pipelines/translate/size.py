"""Whether a workflow fits into the API server."""

import json
from typing import Any

from trainyard.errors import UsageError

LARGEST = 1 << 20  # bytes; etcd accepts one and a half times that, and the status needs room in addition to the spec


def check(workflow: dict[str, Any], file: str) -> None:
    """Refuses a workflow that is too large for etcd, with its size and largest parts.

    Raises:
        UsageError: with the largest parts and the hint.
    """
    total = of(workflow)
    if total <= LARGEST:
        return
    spec = workflow["spec"]
    arguments = sorted(
        ((of(one), f"argument {one['name']}") for one in spec.get("arguments", {}).get("parameters", ())), reverse=True
    )
    templates = sorted(((of(one), f"template {one['name']}") for one in spec["templates"]), reverse=True)
    parts = ", ".join(f"{name} {size:,}" for size, name in sorted(arguments + templates, reverse=True)[:3])
    data = arguments and arguments[0][0] > templates[0][0]
    hint = (
        "pass large values as artifacts"
        if data
        else "put long code into the image, loop over a list instead of writing tasks out, or cut the pipeline in two"
    )
    what = f"the workflow has {total:,} bytes, etcd takes {LARGEST:,}; largest parts: {parts}"
    raise UsageError(what, where=file, hint=hint)


def of(value: Any) -> int:
    """Bytes of a value as JSON in the API server's format."""
    return len(json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode())
