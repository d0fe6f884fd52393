"""What a job has to know of the platform: names that stand in the contract, for one team."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from trainyard.contract.model import Contract, Pool, Team
from trainyard.errors import UsageError
from trainyard.kinds import registry

GPU, CPU = "gpu", "cpu"
BUCKET = "runs"  # where code, results and checkpoints of teams are, below the team's name
MLFLOW_SECRET = "trainyard-mlflow"  # the team's log-in to MLflow, where it asks for one; the site makes it
SECRET = "trainyard-s3"  # the team's keys to the store; the chart makes it in each team's namespace
DAY_S = 86400  # a job's deadline, and how long a finished one stays, where the contract has neither


@dataclass(frozen=True)
class TeamConfig:
    """One team's view of the contract."""

    own: Team
    scheduler: str
    priorities: tuple[str, ...]  # the team's, the lowest first
    pools: tuple[Pool, ...]
    registry: str
    images: Mapping[str, str]  # of the contract, by key
    cuda_images: Mapping[str, str] = field(default_factory=dict)  # those that there are with CUDA, by the same keys
    packages: Mapping[str, Any] = field(default_factory=dict)  # of the contract: where pip asks
    mlflow: str = ""  # address of the server that metrics go to; "" for none
    secret: str = SECRET  # with the keys to the store
    pull_secrets: tuple[Mapping[str, str], ...] = ()  # a team's are on its accounts

    @classmethod
    def of_platform(cls, contract: Contract) -> TeamConfig:
        """The platform itself: the release's namespace and its own keys, no queue and no class."""
        return cls(
            own=Team(contract.namespace, queues=(), priority_classes=(), max_gpus=0, max_claim=""),
            scheduler=contract.scheduler,
            priorities=(),
            pools=contract.pools,
            registry=_registry(contract),
            images=dict(contract.images),
            secret=str(((contract.raw.get("storage") or {}).get("s3") or {}).get("secret") or SECRET),
            pull_secrets=tuple(contract.raw.get("imagePullSecrets") or ()),
        )

    @classmethod
    def of(cls, contract: Contract, team: str) -> TeamConfig:
        """From the contract. Raises UsageError when the team isn't there."""
        own = contract.team(team)
        values = {one["name"]: int(one.get("value", 0)) for one in contract.raw.get("priorityClasses") or []}
        return cls(
            own=own,
            scheduler=contract.scheduler,
            priorities=tuple(sorted(own.priority_classes, key=lambda name: values.get(name, 0))),
            pools=contract.pools_of(own),
            registry=_registry(contract),
            images=dict(contract.images),
            cuda_images=dict(contract.cuda_images),
            packages=dict(contract.raw.get("packages") or {}),
            mlflow=contract.tracking_uri,
        )

    @property
    def team(self) -> str:
        """Its name, and that of its namespace."""
        return self.own.name

    @property
    def queues(self) -> tuple[str, ...]:
        """The team's, its default one first."""
        return self.own.queues

    @property
    def most_cpu(self) -> str:
        """The most CPU that one container may ask for; "" where there is no bound."""
        return str((self.own.limits.get("limits") or {}).get("cpu", ""))

    @property
    def platform_image(self) -> str:
        """The image of containers that bring code and packages."""
        return self.images["platform"]

    @property
    def priority(self) -> str:
        """The class of jobs that name none: the team's default, else the lowest but one, with one below to wait in."""
        if self.own.default_priority:
            return self.own.default_priority
        return self.priorities[min(1, len(self.priorities) - 1)] if self.priorities else ""

    def pool(self, name: str, *, gpus: bool) -> Pool:
        """The pool of that name, or the default one for pods with or without GPUs. Raises UsageError."""
        kind = GPU if gpus else CPU
        if name:
            found = next((pool for pool in self.pools if pool.name == name), None)
            if found is None:
                hint = f"take one of {', '.join(pool.name for pool in self.pools)}"
                raise UsageError(f"the platform has no node pool {name}", hint=hint)
            if gpus and found.kind != GPU:
                raise UsageError(f"nodes of the pool {name} have no GPU", hint="name another pool, or set gpus to 0")
            if not gpus and found.kind == GPU:
                raise UsageError(f"the pool {name} is for work with GPUs", hint="set gpus, or name another pool")
            return found
        fitting = [pool for pool in self.pools if pool.kind == kind]
        if not fitting:
            hint = "set gpus to 0" if gpus else "set gpus"
            raise UsageError(f"the platform has no node pool of kind {kind}", hint=hint)
        return next((pool for pool in fitting if not pool.spot), fitting[0])

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
            if key not in self.images:
                raise UsageError(f"the platform names no image for {framework}", hint="name one with image")
            found = self.cuda_images.get(key, "") if cuda else self.images[key]
            return found or self._refused(self.images[key], str(pool and pool.name), framework)
        head, slash, _ = name.partition("/")
        hosted = slash and ("." in head or ":" in head or head == "localhost")
        found = name if hosted else f"{self.registry}/{name}"
        if cuda and found in self.images.values() and found not in self.cuda_images.values():
            return self._refused(found, str(pool and pool.name))
        return found

    def _refused(self, image: str, pool: str, framework: str = "") -> str:
        """Raises UsageError for an image of ours without CUDA on GPUs that compute, which is that of the framework."""
        key = next((key for key, known in self.images.items() if known == image), "")
        instead = self.cuda_images.get(key)
        whose = f"the platform's image for {framework}, {image}," if framework else image
        what = f"{whose} computes on CPUs, and the GPUs of pool {pool} would be held for nothing"
        hint = f"take {instead}" if instead else "name one with CUDA by image"
        raise UsageError(what, hint=f"{hint}, or set gpus to 0")

    def check(self, queue: str, priority: str, gpus: int) -> None:
        """Refuses a queue, class or number of GPUs that the team may not have. Raises UsageError."""
        self.own.check(queue, priority)
        if gpus > self.own.max_gpus:
            most = self.own.max_gpus
            what = f"the job asks for {gpus} GPUs over all nodes, team {self.team} may have {most} in one job"
            raise UsageError(what, hint="take fewer nodes or GPUs, or ask for a higher maxGpusPerJob")


def _registry(contract: Contract) -> str:
    return str(contract.raw.get("imageRegistry") or "docker.io").rstrip("/")
