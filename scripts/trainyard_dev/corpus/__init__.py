"""Upstream's examples, on which lint is compared with the API server; results hold only names and verdicts."""
