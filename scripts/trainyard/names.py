"""Names that the parts of this package share and that no contract can change."""

QUEUE = "scheduling.volcano.sh/queue-name"  # annotation of pods and jobs
GANG = "scheduling.k8s.io/group-name"  # annotation of pods: their PodGroup
RUN = "trainyard.io/run"  # label of what a run of a pipeline makes
SUBMITTER = "trainyard.io/submitted-by"  # annotation of jobs and runs: who made them
GPU = "nvidia.com/gpu"  # the resource that the device plugin offers, and the key of the GPU nodes' taint
