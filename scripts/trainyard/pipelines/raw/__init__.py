"""Workflows that somebody wrote for Argo: what their templates, artifacts and claims lack becomes the team's."""
