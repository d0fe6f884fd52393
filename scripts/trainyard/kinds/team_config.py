"""What a job has to know of the platform: names in the contract, for one team."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from trainyard.contract.model import Contract, Pool, Team
from trainyard.errors import UsageError
from trainyard.kinds import registry

BUCKET = "runs"  # where code, results and checkpoints of teams are, below the team's name
MLFLOW_SECRET = "trainyard-mlflow"  # the team's log-in to MLflow, where it asks for one; the site makes it
SECRET = "trainyard-s3"  # the team's keys to the store; the chart makes it in each team's namespace


@dataclass(frozen=True)
class TeamConfig:
    """A team, and the platform that its jobs run on."""

    team: Team
    contract: Contract
    secret: str = SECRET  # with the keys to the store
    pull_secrets: tuple[Mapping[str, str], ...] = ()  # a team's are on its accounts

    @classmethod
    def of_platform(cls, contract: Contract) -> TeamConfig:
        """The platform itself: the release's namespace and its own keys, no queue and no class."""
        return cls(
            Team(contract.namespace, pools=contract.pools),
            contract,
            secret=str(((contract.raw.get("storage") or {}).get("s3") or {}).get("secret") or SECRET),
            pull_secrets=tuple(contract.raw.get("imagePullSecrets") or ()),
        )

    @classmethod
    def of(cls, contract: Contract, team: str) -> TeamConfig:
        """From the contract. Raises UsageError when the team isn't there."""
        return cls(contract.team(team), contract)

    @property
    def platform_image(self) -> str:
        """The image of containers that bring code and packages."""
        return self.contract.images["platform"]

    def image(self, name: str, framework: str, pool: Pool | None = None) -> str:
        """The image with its host: one without comes from the platform's registry; none means the platform's own.

        Args:
            pool: where its GPUs are; None: it has none.

        Raises:
            UsageError: the platform has no image for the framework, or none that computes on the pool's GPUs.
        """
        cuda = pool is not None and pool.cuda
        if not name:
            key = registry.of_framework(framework).image
            if key not in self.contract.images:
                raise UsageError(f"the platform names no image for {framework}", hint="name one with image")
            found = self.contract.cuda_images.get(key, "") if cuda else self.contract.images[key]
            return found or self._refused(self.contract.images[key], str(pool and pool.name), framework)
        head, slash, _ = name.partition("/")
        hosted = slash and ("." in head or ":" in head or head == "localhost")
        found = name if hosted else f"{self.contract.registry}/{name}"
        if cuda and found in self.contract.images.values() and found not in self.contract.cuda_images.values():
            return self._refused(found, str(pool and pool.name))
        return found

    def _refused(self, image: str, pool: str, framework: str = "") -> str:
        """Raises UsageError for an image of ours without CUDA on GPUs that compute, which is that of the framework."""
        key = next((key for key, known in self.contract.images.items() if known == image), "")
        instead = self.contract.cuda_images.get(key)
        whose = f"the platform's image for {framework}, {image}," if framework else image
        what = f"{whose} computes on CPUs, and the GPUs of pool {pool} would be held for nothing"
        hint = f"use {instead}" if instead else "name one with CUDA by image"
        raise UsageError(what, hint=f"{hint}, or set gpus to 0")
