"""PaddleJob: workers that find each other by the first one's address."""

from trainyard.kinds.builders.common import workers_job as build

__all__ = ["build"]
