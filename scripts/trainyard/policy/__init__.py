"""Admission rules: their definitions, and their verdicts on a user's manifests without a cluster."""
