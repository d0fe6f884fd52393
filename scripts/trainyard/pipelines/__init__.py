"""Pipelines: compiled, translated, checked, sent and followed; on the cluster or on this machine."""
