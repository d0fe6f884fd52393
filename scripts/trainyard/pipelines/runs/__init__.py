"""Runs of pipelines: what became of each step, its log, its artifacts, and what one may do about it."""
