"""A training job in the cluster: made by the platform's contract or adopted, followed, and stopped with its step."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from trainyard.errors import TrainyardError
from trainyard.kinds import TeamConfig, manifest
from trainyard.kinds.status import RUNNING, outcome
from trainyard.pipelines.steps import stopping
from trainyard.pipelines.steps.jobs import Jobs
from trainyard.pipelines.steps.request import Request
from trainyard.pipelines.steps.wait import Watch
from trainyard_agent.api import Api, ApiError

if TYPE_CHECKING:
    from trainyard.contract import Contract


def run(request: Request, env: Mapping[str, str], api: Api | None = None) -> None:
    """Runs the job until it succeeds. Raises TrainyardError; ends the process with code 143 if the step is stopped."""
    jobs = Jobs(api or connect(), request.run.namespace)
    wanted = manifest(request.spec(), team_config(jobs, request, env))
    with stopping.stoppable():
        try:
            made = jobs.adopt(wanted)
            Watch(jobs, wanted, made["metadata"]["uid"]).to_end()
        except stopping.Stopped:
            title = f"{wanted['kind']} {wanted['metadata']['name']}"
            stopping.stop(jobs, title, lambda: _take_away(jobs, wanted))


def team_config(jobs: Jobs, request: Request, env: Mapping[str, str]) -> TeamConfig:
    """The contract's configuration for this step's team."""
    return TeamConfig.of(contract(jobs, env), request.run.team)


def contract(jobs: Jobs, env: Mapping[str, str]) -> Contract:
    """The platform's contract from the cluster. Raises TrainyardError."""
    from trainyard.contract import CONFIG_MAP, read, system

    path = f"/api/v1/namespaces/{system(env)}/configmaps/{CONFIG_MAP}"
    try:
        found = jobs.ask("GET", path)
    except ApiError as error:
        hint = "ask the platform's engineers: pipelines must be able to read it"
        raise TrainyardError(f"the platform's contract can't be read: {error.message}", hint=hint) from None
    return read.contract(json.loads(found["data"]["contract.json"]), path)


def connect() -> Api:
    """A client of the API server, with this step's account. Raises TrainyardError if the step has no token."""
    try:
        return Api()
    except OSError as error:
        what = f"this step can't reach the API server ({error.strerror or error})"
        raise TrainyardError(what, hint="run it with the account of pipelines") from None


def _take_away(jobs: Jobs, wanted: dict[str, Any]) -> None:
    """Deletes the job, unless it has ended."""
    found = jobs.find(wanted)
    if found is not None and outcome(found)[0] == RUNNING:
        jobs.delete(wanted)
