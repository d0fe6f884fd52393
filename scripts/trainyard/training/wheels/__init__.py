"""Wheels of Python packages that the platform engineer brings to the store, for runs of all teams."""
