"""A deadline for each pod of a workflow: steps of its exit handler don't have the workflow's own."""

from collections.abc import Iterable
from typing import Any

LEAVES = ("container", "containerSet", "data", "resource", "script")  # templates that create a pod


def bound(templates: Iterable[dict[str, Any]], seconds: int) -> None:
    """Set this deadline, in place, on templates that create a pod and have none. Argo uses the earlier of two."""
    for one in templates:
        if any(key in one for key in LEAVES):
            one.setdefault("activeDeadlineSeconds", seconds)
