"""Admission rules: which there are, and what they would say to a user's manifests, without a cluster."""
