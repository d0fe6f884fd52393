"""Names that the parts of this package share, and that no contract can change."""

import re

QUEUE = "scheduling.volcano.sh/queue-name"  # annotation of pods and jobs
GANG = "scheduling.k8s.io/group-name"  # annotation of pods: their PodGroup
RUN = "trainyard.io/run"  # label of objects created by a pipeline run
SUBMITTER = "trainyard.io/submitted-by"  # annotation of jobs and runs: their creator
GPU = "nvidia.com/gpu"  # the resource that the device plugin offers, and the key of the GPU nodes' taint


def label(text: str) -> str:
    """The text as a valid label value, changed as little as possible."""
    return re.sub(r"[^A-Za-z0-9_.-]+", "-", text)[:63].strip("-_.")
