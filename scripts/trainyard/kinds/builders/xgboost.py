"""XGBoostJob: a master that runs the tracker, and workers."""

from trainyard.kinds.builders.common import master_job as build

__all__ = ["build"]
