"""An end for each pod of a workflow: steps at its exit know nothing of the workflow's own."""

from collections.abc import Iterable
from typing import Any

LEAVES = ("container", "containerSet", "data", "resource", "script")  # templates that make a pod


def bound(templates: Iterable[dict[str, Any]], seconds: int) -> None:
    """Gives this deadline to templates that make a pod and have none, in place. Argo takes the nearer of two ends."""
    for one in templates:
        if any(key in one for key in LEAVES):
            one.setdefault("activeDeadlineSeconds", seconds)
