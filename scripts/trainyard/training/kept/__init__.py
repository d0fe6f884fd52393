"""Logs of deleted pods from the store, where a collector on every node puts them."""

from trainyard.training.kept import objects
from trainyard.training.kept.find import Log, NoLogError, logs

__all__ = ["Log", "NoLogError", "logs", "objects"]
