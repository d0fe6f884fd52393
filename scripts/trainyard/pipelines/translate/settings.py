"""Inputs of a translation besides the pipeline: the run's team and the platform's configuration."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from trainyard.contract import Contract, Team
from trainyard.names import GPU

WEEK_S = 604800


@dataclass(frozen=True)
class Settings:
    """One team's run on one platform.

    Args:
        queue: by default the team's own.
        priority: the requested class.
        cache: False runs every step, whatever the pipeline says.
    """

    contract: Contract
    team: Team
    queue: str = ""
    priority: str = ""
    experiment: str = "default"
    cache: bool = True

    def __post_init__(self) -> None:
        object.__setattr__(self, "queue", self.queue or self.team.queues[0])

    @classmethod
    def of(cls, contract: Contract, team: str, **own: Any) -> Settings:
        """The settings of `team` by the contract; `own` are this run's: queue, priority, experiment, cache.

        Raises:
            UsageError: a queue or priority class that isn't the team's.
        """
        found = contract.team(team)
        found.check(own.get("queue", ""), own.get("priority", ""))
        return cls(contract, found, **own)

    @property
    def longest(self) -> int:
        """The longest time that a run may take on this site, in seconds."""
        return int(self.contract.parameters.get("maxDeadlineSeconds", WEEK_S))

    @property
    def deadline(self) -> int:
        """The deadline in seconds of a run without one. A run is many jobs: only the team's own setting shortens it."""
        return int(self.team.own_fill.get("deadlineSeconds", self.longest))

    @property
    def keep(self) -> int:
        """How long a finished run stays, in seconds."""
        return int(self.team.own_fill.get("keepSeconds", WEEK_S))

    @property
    def bucket(self) -> str:
        """The bucket of the run's artifacts, which are below the team's name."""
        return str(self.contract.pipelines.get("bucket", "runs"))

    def ends(self, config: Mapping[str, Any]) -> int:
        """The deadline of a run, from its pipeline if it has one, limited by the site's maximum."""
        return min(config.get("activeDeadlineSeconds") or self.deadline, self.longest)

    def tolerations(self, resource: str) -> list[dict[str, Any]]:
        """Tolerations that let a pod with that resource onto its nodes."""
        pool = self.team.gpu_pool(resource)
        if pool is not None:
            return [dict(one) for one in pool.tolerations]
        return [{"key": GPU, "operator": "Exists", "effect": "NoSchedule"}] if resource == GPU else []
