"""Training jobs: converts a short spec to a manifest that complies with every rule of the platform.

Standard library only, except `check`, `images` and `fit`: the same modules run inside the steps of pipelines.
"""

from trainyard.kinds.manifests import manifest
from trainyard.kinds.spec import JobSpec, Mount
from trainyard.kinds.team_config import TeamConfig

__all__ = ["JobSpec", "Mount", "TeamConfig", "manifest"]
