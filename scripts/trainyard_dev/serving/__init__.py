"""The model server on this machine: an environment with its image's pins, small models, and tools to measure it."""
