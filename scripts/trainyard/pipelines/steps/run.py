"""The run that a step belongs to, from variables that the translator sets."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from trainyard.errors import TrainyardError


@dataclass(frozen=True)
class Run:
    """Facts of the run and of this step."""

    name: str
    uid: str
    team: str
    namespace: str
    queue: str
    priority: str
    bucket: str
    task: str
    local: bool

    @classmethod
    def of(cls, env: Mapping[str, str]) -> Run:
        """The run from the environment. Raises TrainyardError if this is not a step of a pipeline."""
        missing = [name for name in ("TRAINYARD_RUN", "TRAINYARD_RUN_UID", "TRAINYARD_TEAM") if not env.get(name)]
        if missing:
            what = f"{', '.join(missing)} not set: this is not a step of a pipeline"
            raise TrainyardError(what, hint="run it by `trainyard submit` or `trainyard run --local`")
        try:
            task = str(json.loads(env.get("TRAINYARD_STEP") or "{}").get("task", ""))
        except (ValueError, AttributeError):
            raise TrainyardError("TRAINYARD_STEP does not say which step this is") from None
        team = env["TRAINYARD_TEAM"]
        return cls(
            name=env["TRAINYARD_RUN"],
            uid=env["TRAINYARD_RUN_UID"],
            team=team,
            namespace=env.get("TRAINYARD_NAMESPACE") or team,
            queue=env.get("TRAINYARD_QUEUE", ""),
            priority=env.get("TRAINYARD_PRIORITY", ""),
            bucket=env.get("TRAINYARD_BUCKET") or "runs",
            task=task,
            local=bool(env.get("TRAINYARD_LOCAL")),
        )

    @property
    def owner(self) -> dict[str, Any]:
        """The workflow, as the owner of the step's objects: deleting the run deletes its jobs."""
        return {
            "apiVersion": "argoproj.io/v1alpha1",
            "kind": "Workflow",
            "name": self.name,
            "uid": self.uid,
            "controller": False,
            "blockOwnerDeletion": False,
        }
