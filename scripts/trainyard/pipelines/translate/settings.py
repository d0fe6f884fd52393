"""What a translation has to know besides the pipeline: whose run it is and how the platform is set up."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from trainyard.names import GPU

if TYPE_CHECKING:
    from trainyard.contract import Contract, Pool

MiB = 1 << 20


@dataclass(frozen=True)
class Settings:
    """One team's run on one platform. The defaults suit a look at a translation without any platform.

    Args:
        priority: the class that was asked for; `default_priority`: that of the team's runs that name none.
        cache: False runs every step anew, whatever the pipeline says.
        infrastructure_retries: attempts after a step's pod was lost or the store was away; a failing command has none.
        largest: bytes that a workflow may have in the API server.
        system: namespace of the release, where steps find the contract; empty where it isn't known.
        step_image: image of steps that run no image of the user: the importer and claims.
        platform_image: image of containers that bring packages; `packages`: of the contract, where pip asks.
        store: the object store's endpoint (a URL), region and mode; empty where it isn't known.
        claim_class: storage class of claims that name none.
        deadline: of a run that names none, in seconds; `longest` is the most that the site allows.
        keep: how long a finished run stays, in seconds.
        mlflow: address of the server that metrics go to; empty for none.
        stays: labels of the nodes that steps without GPUs stay on; none: wherever they fit.
    """

    team: str = "team"
    namespace: str = ""
    queue: str = ""
    priority: str = ""
    default_priority: str = ""
    scheduler: str = "volcano"
    service_account: str = "pipeline"
    bucket: str = "runs"
    experiment: str = "default"
    cache: bool = True
    cache_age: str = "720h"
    infrastructure_retries: int = 4
    step_image: str = "trainyard/argoexec"
    platform_image: str = "trainyard/platform"
    packages: Mapping[str, Any] = field(default_factory=dict)
    pools: tuple[Pool, ...] = ()
    deadline: int = 604800
    longest: int = 604800
    keep: int = 7 * 86400
    largest: int = MiB
    secret: str = "trainyard-s3"
    system: str = ""
    name: str = ""
    labels: Mapping[str, str] = field(default_factory=dict)
    store: Mapping[str, Any] = field(default_factory=dict)
    claim_class: str = ""
    mlflow: str = ""
    stays: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        object.__setattr__(self, "namespace", self.namespace or self.team)
        object.__setattr__(self, "queue", self.queue or self.team)

    @classmethod
    def of(cls, contract: Contract, team: str, **own: Any) -> Settings:
        """The settings of `team` by the contract; `own` are this run's: queue, priority, experiment, cache, name.

        Raises:
            UsageError: a queue or priority class that isn't the team's.
        """
        found = contract.team(team)
        pipelines = contract.pipelines
        queue, priority = own.get("queue") or found.queues[0], own.get("priority") or ""
        found.check(queue, priority)
        longest = int(contract.parameters.get("maxDeadlineSeconds", cls.longest))
        settings: dict[str, Any] = {
            "team": team,
            "scheduler": contract.scheduler,
            "service_account": pipelines.get("serviceAccount", cls.service_account),
            "bucket": pipelines.get("bucket", cls.bucket),
            "system": contract.namespace,
            "step_image": contract.images.get("argoexec", cls.step_image),
            "platform_image": contract.images.get("platform", cls.platform_image),
            "packages": dict(contract.raw.get("packages") or {}),
            "store": contract.store,
            "claim_class": contract.shared_class,
            "mlflow": contract.tracking_uri,
            "default_priority": found.default_priority,
            # A pipeline is many jobs one after the other, so only what is said for this very team ends it sooner.
            "deadline": found.said("deadline", longest),
            "longest": longest,
            "keep": found.said("keep", cls.keep),
            "stays": next((pool.labels for pool in contract.pools_of(found) if found.pools and pool.kind == "cpu"), {}),
            "pools": contract.pools_of(found),
        }
        return cls(**{**settings, **own, "queue": queue, "priority": priority})

    def ends(self, config: Mapping[str, Any]) -> int:
        """The deadline of a run whose pipeline may name its own, which the site bounds."""
        return min(config.get("activeDeadlineSeconds") or self.deadline, self.longest)

    def gpu_pool(self, resource: str) -> Pool | None:
        """Where pods with that resource run; None when the platform has no such nodes, or nothing is known of it."""
        fitting = [pool for pool in self.pools if pool.resource == resource]
        return next((pool for pool in fitting if not pool.spot), fitting[0] if fitting else None)

    def tolerations(self, resource: str) -> list[dict[str, Any]]:
        """What lets a pod with that resource onto its nodes."""
        pool = self.gpu_pool(resource)
        if pool is not None:
            return [dict(one) for one in pool.tolerations]
        return [{"key": GPU, "operator": "Exists", "effect": "NoSchedule"}] if resource == GPU else []
