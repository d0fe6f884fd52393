"""Container images: built here or pulled, and passed to a cluster through its own registry."""
