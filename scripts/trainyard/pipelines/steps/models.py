"""Models in pipelines: register a version, compare it with the one in service, put it into service or roll back.

A step can't put a model into service for the first time: it changes the version of a Deployment that a member made,
which is all that its account may do.
"""

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from trainyard.errors import TrainyardError
from trainyard.kinds.spec import seconds
from trainyard.pipelines.steps import cluster, results, stopping
from trainyard.pipelines.steps.jobs import Jobs
from trainyard.pipelines.steps.run import Run
from trainyard.serving import gate as gates
from trainyard.serving import plan, rollout, settings, shelf, versions
from trainyard.serving.cards import Card
from trainyard_agent.api import ApiError

Object = dict[str, Any]
JSON_PATCH = "application/json-patch+json"
MANAGER = {"fieldManager": "trainyard"}
POLL_INTERVAL_S = 2.0
CONFLICT, INVALID = 409, 422  # the API server's status for a patch that was made from an older state


def register(given: Mapping[str, Any], env: Mapping[str, str]) -> tuple[str, str]:
    """Registers the model's artifact; returns its address and version. Raises TrainyardError."""
    of = Run.of(env)
    folder, artifact = Path(given["model"].path), given["model"]
    known = {key: value for key, value in dict(artifact.metadata).items() if isinstance(value, (int, float))}
    card = shelf.complete(
        folder,
        {
            **(given.get("card") or {}),
            "name": given["name"],
            "run": of.name,
            "metrics": {**known, **(given.get("metrics") or {})},
        },
    )
    made = _patiently(of, env, lambda found: found.register(folder, card, lambda text: print(text, flush=True)))
    print(f"{made.title} at s3://{made.place}", flush=True)
    if "registered" in given:
        target = Path(given["registered"].path)
        target.mkdir(parents=True, exist_ok=True)
        (target / "model.json").write_text(json.dumps(card, indent=2, sort_keys=True))
        given["registered"].metadata.update({"name": made.name, "version": made.version, "uri": f"s3://{made.place}"})
    return f"s3://{made.place}", made.version


def gate(given: Mapping[str, Any], env: Mapping[str, str], jobs: Jobs | None = None) -> tuple[bool, str]:
    """Whether the version may replace the one in service, and the version in service; "" for none.

    Raises:
        TrainyardError: it may not, and `strict` makes that an error; or a number is missing.
    """
    of = Run.of(env)
    name = str(given["name"])
    candidate = _patiently(of, env, lambda found: found.find(f"{name}@{given['version']}"))
    now = None
    if not of.local:
        found = _deployment(jobs or Jobs(cluster.connect(), of.namespace), name)
        now = versions.of_template(found["spec"]["template"]) if found else None
    served = _patiently(of, env, lambda found: found.find(f"{name}@{now.version}")) if now else None
    minimum = given.get("minimum")
    verdict = gates.judge(
        candidate,
        served,
        str(given.get("metric") or gates.METRIC),
        gain=float(given.get("gain") or 0.0),
        minimum=None if minimum is None or minimum < -1e300 else float(minimum),
        lower=bool(given.get("lower")),
    )
    print(verdict.text, flush=True)
    if not verdict.passed and given.get("strict"):
        raise gates.held(verdict)
    return verdict.passed, served.version if served else ""


def serve(given: Mapping[str, Any], env: Mapping[str, str], jobs: Jobs | None = None) -> str:
    """Puts a version in place of the one in service; returns the version in service afterwards.

    Raises:
        TrainyardError: nobody has put the model into service, the change is refused, or the version does not get ready
            in time: then the previous one is restored.
    """
    of = Run.of(env)
    name, wanted = str(given["name"]), str(given["version"])
    if of.local:
        print(f"ignored locally: {name}@{wanted} is not served", flush=True)
        return wanted
    jobs = jobs or Jobs(cluster.connect(), of.namespace)
    contract = cluster.contract(jobs, env)
    card = _patiently(of, env, lambda found: found.find(f"{name}@{wanted}"))
    to = versions.Served(
        card.version, card.digest, f"s3://{card.place}", plan.image_of(plan.part(contract), contract, card)
    )
    before = _change(jobs, name, to)
    limit = seconds(str(given.get("timeout") or "10m"))
    with stopping.stoppable():
        try:
            _until_ready(jobs, name, limit)
        except stopping.Stopped:
            stopping.stop(jobs, f"version {to.version} of {name}", lambda: _back(jobs, name, before, to))
        except TrainyardError as error:
            _back(jobs, name, before, to)
            hint = f"see its pods: kubectl get pods -n {of.namespace} -l {rollout.LABEL}={name}"
            back = f"; {name}@{before.version} is back" if before.version != to.version else ""
            raise TrainyardError(f"{card.title} did not go into service: {error.what}{back}", hint=hint) from None
    print(f"{card.title} is in service", flush=True)
    return card.version


def _change(jobs: Jobs, name: str, to: versions.Served) -> versions.Served:
    """Makes the Deployment serve that version, unless it does; returns the previous one. Raises TrainyardError."""
    for left in (2, 1, 0):
        found = _deployment(jobs, name)
        if found is None:
            hint = f"put it there once, trainyard serve {name}; pipelines then bring later versions"
            raise TrainyardError(f"{name} is not in service in {jobs.namespace}", hint=hint)
        before = versions.of_template(found["spec"]["template"])
        if before is None:
            raise TrainyardError(
                f"{rollout.name_of(name)} is not a server that trainyard made", hint="serve the model again"
            )
        if before.version == to.version and before.digest == to.digest:
            return before
        if settings.read(found).get("runtime", plan.OWN) != plan.OWN:
            to = replace(to, image="")  # Triton's or vLLM's stays: the platform's image can't run their command
        try:
            jobs.ask("PATCH", _path(jobs, name), versions.change(found, to), MANAGER, JSON_PATCH)
            print(f"{name}: {before.version} gives way to {to.version}", flush=True)
            return before
        except ApiError as error:
            if error.status in (CONFLICT, INVALID) and left:
                continue
            raise TrainyardError(f"version {to.version} of {name} was refused: {error.message}") from None
    raise AssertionError("unreachable")


def _back(jobs: Jobs, name: str, before: versions.Served, to: versions.Served) -> None:
    """Undoes the change, unless somebody else has made another since."""
    found = _deployment(jobs, name)
    now = versions.of_template(found["spec"]["template"]) if found else None
    if found is None or now is None or now.version != to.version or before.version == to.version:
        return
    try:
        jobs.ask("PATCH", _path(jobs, name), versions.change(found, before), MANAGER, JSON_PATCH)
    except ApiError as error:
        raise TrainyardError(f"{name} could not go back to {before.version}: {error.message}") from None


def _until_ready(jobs: Jobs, name: str, limit: float) -> None:
    end, said = jobs.clock() + limit, ""
    while True:
        found = _deployment(jobs, name)
        if found is None:
            raise TrainyardError("it was taken out of service")
        good, text = rollout.ready(found)
        if text != said:
            print(f"{name}: {text}", flush=True)
            said = text
        if good:
            return
        if jobs.clock() > end:
            raise TrainyardError(f"it is not ready after {limit:.0f} s: {text}")
        jobs.sleep(POLL_INTERVAL_S)


def _deployment(jobs: Jobs, name: str) -> Object | None:
    try:
        return jobs.ask("GET", _path(jobs, name))
    except ApiError as error:
        if error.status == 404:
            return None
        hint = "ask your platform engineer to set serving.enabled" if error.status == 403 else ""
        raise TrainyardError(f"{rollout.name_of(name)} can't be read: {error.message}", hint=hint) from None


def _path(jobs: Jobs, name: str) -> str:
    return f"/apis/apps/v1/namespaces/{jobs.namespace}/deployments/{rollout.name_of(name)}"


def _patiently(of: Run, env: Mapping[str, str], work: Any) -> Card:
    """Works on the team's models; waits while the store is unavailable."""
    if folder := env.get("TRAINYARD_BUCKETS"):
        found: Card = work(shelf.ModelRegistry(shelf.Folder(Path(folder)), of.team, of.bucket))
        return found
    from trainyard_agent.store import connect

    def go() -> Card:
        client = connect.client(connect.access(env=env))
        made: Card = work(shelf.ModelRegistry(shelf.EnvironmentStore(client), of.team, of.bucket))
        return made

    return results.patiently(go, f"s3://{of.bucket}/{of.team}/models")
