"""Pipelines that only the end-to-end run uses."""
