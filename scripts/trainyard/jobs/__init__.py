"""Training jobs: a short spec becomes a manifest that every rule of the platform admits.

Standard library only, but for `check`: the same modules run inside the steps of pipelines.
"""

from trainyard.jobs.facts import Facts
from trainyard.jobs.kinds import manifest
from trainyard.jobs.spec import JobSpec, Mount

__all__ = ["Facts", "JobSpec", "Mount", "manifest"]
