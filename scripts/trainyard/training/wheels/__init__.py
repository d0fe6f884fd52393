"""Wheels of Python packages that the platform engineer uploads to the store, for runs of all teams."""
