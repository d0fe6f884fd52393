"""Submitting jobs to a cluster."""
