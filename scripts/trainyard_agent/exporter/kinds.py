"""Kinds of jobs, as the API has them."""

from __future__ import annotations

WORKFLOWS = "argoproj.io/v1alpha1/workflows"
# Two kinds are called Job; series need a name for each.
VOLCANO_GROUP, VOLCANO_JOB = "batch.volcano.sh", "VolcanoJob"


def kind_of(group: str, kind: str) -> str:
    """The kind's name in series."""
    return VOLCANO_JOB if (group, kind) == (VOLCANO_GROUP, "Job") else kind
