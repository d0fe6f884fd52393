"""Pipelines: compiled, translated, checked, submitted and followed; on the cluster or on this machine."""
