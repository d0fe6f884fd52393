"""Names that the parts of this package share and that no contract can change."""

import re

QUEUE = "scheduling.volcano.sh/queue-name"  # annotation of pods and jobs
GANG = "scheduling.k8s.io/group-name"  # annotation of pods: their PodGroup
RUN = "trainyard.io/run"  # label of what a run of a pipeline makes
SUBMITTER = "trainyard.io/submitted-by"  # annotation of jobs and runs: who made them
GPU = "nvidia.com/gpu"  # the resource that the device plugin offers, and the key of the GPU nodes' taint


def label(text: str) -> str:
    """A label's value, as near to the text as Kubernetes takes it."""
    return re.sub(r"[^A-Za-z0-9_.-]+", "-", text)[:63].strip("-_.")
