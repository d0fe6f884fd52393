"""Generates manifests and values from short specs, on standard output: jobs, queues, teams, pipelines."""
