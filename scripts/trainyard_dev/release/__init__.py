"""A release: what `make release` builds, and the proof that it can be taken from a registry alone."""
