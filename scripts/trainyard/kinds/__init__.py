"""Training jobs: a short spec becomes a manifest that every rule of the platform admits.

Standard library only, but for `check`, `images` and `fit`: the same modules run inside the steps of pipelines.
"""

from trainyard.kinds.manifests import manifest
from trainyard.kinds.spec import JobSpec, Mount
from trainyard.kinds.team_config import TeamConfig

__all__ = ["JobSpec", "Mount", "TeamConfig", "manifest"]
