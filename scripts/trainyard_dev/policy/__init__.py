"""Tests of a user's manifests against a real API server with the rendered platform."""
