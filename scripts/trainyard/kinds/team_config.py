"""The platform as a job needs it: the names in the contract, for one team."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from trainyard.contract.model import Contract, Pool, Team
from trainyard.errors import UsageError
from trainyard.kinds import registry

BUCKET = "runs"  # bucket for code, results and checkpoints, below the team's name
MLFLOW_SECRET = "trainyard-mlflow"  # the team's log-in to MLflow, if the server requires one; the site creates it
SECRET = "trainyard-s3"  # the team's keys to the store; the chart creates it in each team's namespace


@dataclass(frozen=True)
class TeamConfig:
    """A team, and the platform that runs its jobs."""

    team: Team
    contract: Contract
    secret: str = SECRET  # Secret with the keys to the store
    pull_secrets: tuple[Mapping[str, str], ...] = ()  # empty for a team, whose service accounts have them

    @classmethod
    def of_platform(cls, contract: Contract) -> TeamConfig:
        """Creates the configuration of the platform itself: the release's namespace and keys, no queue and no class."""
        return cls(
            Team(contract.namespace, pools=contract.pools),
            contract,
            secret=str(((contract.raw.get("storage") or {}).get("s3") or {}).get("secret") or SECRET),
            pull_secrets=tuple(contract.raw.get("imagePullSecrets") or ()),
        )

    @classmethod
    def of(cls, contract: Contract, team: str) -> TeamConfig:
        """Creates a team's configuration from the contract. Raises UsageError if the team does not exist."""
        return cls(contract.team(team), contract)

    @property
    def platform_image(self) -> str:
        """Image of the containers that transfer code and packages."""
        return self.contract.images["platform"]

    def image(self, name: str, framework: str, pool: Pool | None = None) -> str:
        """The full image name. A name without host is in the platform's registry; no name means the platform's image.

        Args:
            pool: the GPU pool of the job; None: the job has no GPUs.

        Raises:
            UsageError: the platform has no image for the framework, or none that can compute on the pool's GPUs.
        """
        cuda = pool is not None and pool.cuda
        if not name:
            key = registry.of_framework(framework).image
            if key not in self.contract.images:
                raise UsageError(f"the platform names no image for {framework}", hint="set image")
            found = self.contract.cuda_images.get(key, "") if cuda else self.contract.images[key]
            return found or self._refused(self.contract.images[key], str(pool and pool.name), framework)
        found = self.contract.reference(name)
        if cuda and found in self.contract.images.values() and found not in self.contract.cuda_images.values():
            return self._refused(found, str(pool and pool.name))
        return found

    def _refused(self, image: str, pool: str, framework: str = "") -> str:
        """Raises UsageError for a platform image without CUDA on GPUs; `framework` if the image is its default."""
        key = next((key for key, known in self.contract.images.items() if known == image), "")
        instead = self.contract.cuda_images.get(key)
        whose = f"the platform's image for {framework}, {image}," if framework else image
        what = f"{whose} computes on CPUs, and the GPUs of pool {pool} would be held for nothing"
        hint = f"use {instead}" if instead else "set image to one with CUDA"
        raise UsageError(what, hint=f"{hint}, or set gpus to 0")
