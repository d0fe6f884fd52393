"""Runs of pipelines: the state of each step, its log, its artifacts, and actions on runs."""
