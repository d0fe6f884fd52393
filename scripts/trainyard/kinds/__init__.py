"""Training jobs: a short spec becomes a manifest that every rule of the platform admits.

Standard library only, but for `check`: the same modules run inside the steps of pipelines.
"""

from trainyard.kinds.facts import Facts
from trainyard.kinds.manifests import manifest
from trainyard.kinds.spec import JobSpec, Mount

__all__ = ["Facts", "JobSpec", "Mount", "manifest"]
