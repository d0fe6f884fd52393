"""A training job in the cluster: made by the platform's contract or adopted, followed, stopped with its step."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
from collections.abc import Iterator, Mapping
from typing import Any

from trainyard.errors import TrainyardError
from trainyard.kinds import TeamConfig, manifest
from trainyard.kinds.status import RUNNING, outcome
from trainyard.pipelines.steps.jobs import Jobs
from trainyard.pipelines.steps.request import Request
from trainyard.pipelines.steps.wait import Watch
from trainyard_agent.api import Api, ApiError

CODE = 128 + signal.SIGTERM


class Stopped(BaseException):
    """The step got SIGTERM: its run was stopped, or its node is emptied."""


def run(request: Request, env: Mapping[str, str], api: Api | None = None) -> None:
    """Brings the job to success. Raises TrainyardError; ends the process with code 143 when the step is stopped."""
    if api is None:
        try:
            api = Api()
        except OSError as error:
            what = f"this step has no way to the API server ({error.strerror or error})"
            raise TrainyardError(what, hint="run it with the account of pipelines") from None
    jobs = Jobs(api, request.run.namespace)
    wanted = manifest(request.spec(), team_config(jobs, request, env))
    with _stoppable():
        try:
            made = jobs.adopt(wanted)
            Watch(jobs, wanted, made["metadata"]["uid"]).to_end()
        except Stopped:
            _stop(jobs, wanted)


def team_config(jobs: Jobs, request: Request, env: Mapping[str, str]) -> TeamConfig:
    """What the contract says to this step's team."""
    from trainyard.contract import CONFIG_MAP, read, system

    path = f"/api/v1/namespaces/{system(env)}/configmaps/{CONFIG_MAP}"
    try:
        found = jobs.ask("GET", path)
    except ApiError as error:
        hint = "ask the platform's engineers: pipelines must be able to read it"
        raise TrainyardError(f"the platform's contract can't be read: {error.message}", hint=hint) from None
    return TeamConfig.of(read.contract(json.loads(found["data"]["contract.json"]), path), request.run.team)


@contextlib.contextmanager
def _stoppable() -> Iterator[None]:
    """SIGTERM raises Stopped inside, once."""

    def stop(*_: Any) -> None:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        raise Stopped

    before = signal.signal(signal.SIGTERM, stop)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _stop(jobs: Jobs, wanted: dict[str, Any]) -> None:
    """Takes the job along, unless it has ended or only this pod has to go; ends the process."""
    title = f"{wanted['kind']} {wanted['metadata']['name']}"
    with contextlib.suppress(OSError):  # nobody may be listening any longer
        if evicted(jobs, socket.gethostname()):
            print(f"this pod is taken away: {title} goes on, the next attempt adopts it", flush=True)
            os._exit(CODE)
        print(f"the step is stopped: {title} goes with it", flush=True)
    with open(os.devnull, "w") as nowhere, contextlib.redirect_stdout(nowhere), contextlib.suppress(TrainyardError):
        found = jobs.find(wanted)
        if found is not None and outcome(found)[0] == RUNNING:
            jobs.delete(wanted)
    os._exit(CODE)


def evicted(jobs: Jobs, pod: str) -> bool:
    """Is the pod itself being deleted, as when its node is emptied? Who stops a run signals pods and leaves them."""
    try:
        found = jobs.api.call("GET", f"/api/v1/namespaces/{jobs.namespace}/pods/{pod}")
    except ApiError:
        return False
    return bool(found["metadata"].get("deletionTimestamp"))
