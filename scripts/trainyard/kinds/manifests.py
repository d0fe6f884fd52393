"""Manifest of a job: the part common to all kinds, with the spec from the kind's builder."""

import dataclasses
import importlib
from collections.abc import Callable
from typing import Any

from trainyard.kinds import pods, registry
from trainyard.kinds.spec import JobSpec
from trainyard.kinds.team_config import TeamConfig

Object = dict[str, Any]


def manifest(spec: JobSpec, team_config: TeamConfig) -> Object:
    """The job's manifest for the API server, in the team's namespace.

    Raises:
        UsageError: the team may not use its queue, priority class or number of GPUs, or the pool does not exist.
    """
    team = team_config.team
    queue = spec.queue or team.queues[0]
    team.check(queue, spec.priority, spec.gpus * spec.nodes)
    deadline, keep = (int(team.fill[name]) for name in ("deadlineSeconds", "keepSeconds"))
    spec = dataclasses.replace(spec, deadline=spec.deadline or deadline, keep=spec.keep or keep)
    kind = registry.of_framework(spec.framework)
    meta: Object = {"name": spec.name, "namespace": team.name, "labels": pods.labels(spec)}
    if spec.owner:
        meta["ownerReferences"] = [dict(spec.owner)]
    body: Object = builder(kind)(spec, team_config, queue)
    return {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": meta, "spec": body}


def builder(kind: registry.Kind) -> Callable[[JobSpec, TeamConfig, str], Object]:
    """The function that builds the spec of a kind."""
    module, _, name = (kind.builder or f"{kind.framework}.build").partition(".")
    return getattr(importlib.import_module(f"trainyard.kinds.builders.{module}"), name)  # type: ignore[no-any-return]
