"""Workflows written for Argo: fills gaps in templates, artifacts and claims with the team's settings."""
