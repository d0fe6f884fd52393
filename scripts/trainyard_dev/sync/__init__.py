"""Copies of pins and files that are made from others: written by `versions sync`, compared by its `--check`."""
