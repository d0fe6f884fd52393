"""Logs of pods that are gone: from the store, where a collector on every node has put them."""

from trainyard.training.kept import objects
from trainyard.training.kept.find import Log, NoLogError, logs

__all__ = ["Log", "NoLogError", "logs", "objects"]
