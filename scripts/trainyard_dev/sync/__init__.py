"""Copies of pins, and generated files: written by `versions sync`, compared by its `--check`."""
