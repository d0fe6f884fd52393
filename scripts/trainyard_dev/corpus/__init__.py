"""Upstream's examples, by which lint is held against the API server: what is written of them is names and verdicts."""
