"""Names that the parts of this package share and that no contract can change."""

GPU = "nvidia.com/gpu"  # the resource that the device plugin offers, and the key of the GPU nodes' taint
