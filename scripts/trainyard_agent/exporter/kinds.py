"""Kinds of jobs, as the API has them."""

from __future__ import annotations

# group/version/plural. What scripts/trainyard/kinds/registry.py has; a test compares, this package can't import it.
KINDS = (
    "kubeflow.org/v1/pytorchjobs",
    "kubeflow.org/v1/tfjobs",
    "kubeflow.org/v1/mpijobs",
    "kubeflow.org/v1/jaxjobs",
    "kubeflow.org/v1/paddlejobs",
    "kubeflow.org/v1/xgboostjobs",
    "batch.volcano.sh/v1alpha1/jobs",
    "batch/v1/jobs",
)
WORKFLOWS = "argoproj.io/v1alpha1/workflows"
# Two kinds are called Job; series need a name for each.
VOLCANO_GROUP, VOLCANO_JOB = "batch.volcano.sh", "VolcanoJob"


def kind_of(group: str, kind: str) -> str:
    """The kind's name in series."""
    return VOLCANO_JOB if (group, kind) == (VOLCANO_GROUP, "Job") else kind
