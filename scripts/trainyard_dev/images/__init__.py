"""Container images: made here or pulled, and handed to a cluster through a registry of its own."""
