"""Pipelines that only the end-to-end run knows."""
