"""Distributed MNIST training as a smoke test: real data in, a checked checkpoint and metrics out."""

__version__ = "0.4.0"
