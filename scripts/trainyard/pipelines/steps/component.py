"""One run of a training component: the job, in the cluster or on this machine, and its results."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from trainyard.errors import TrainyardError
from trainyard.pipelines.steps.request import Request
from trainyard.pipelines.steps.run import Run

METRICS = "metrics.json"


def run(framework: str, given: Mapping[str, Any], env: Mapping[str, str]) -> str:
    """Trains, and fills the artifacts `model` and `metrics`; returns the job's name. Raises TrainyardError."""
    request = Request.of(framework, given, Run.of(env))
    if note := request.launched()[1]:
        print(note, flush=True)
    if request.run.local:
        from trainyard.pipelines.steps import ranks

        ranks.run(request, env)
    else:
        from trainyard.pipelines.steps import cluster

        cluster.run(request, env)
    from trainyard.pipelines.steps import results

    folder = Path(given["model"].path)
    files = results.fetch(f"s3://{request.run.bucket}/{request.results}", folder, env)
    print(f"{request.job}: {len(files)} files of results", flush=True)
    numbers = _numbers(folder / METRICS)
    if not request.run.local:
        from trainyard.pipelines.steps import tracking

        tracking.send(request, folder, env)
    for name, value in numbers.items():
        given["metrics"].log_metric(name, value)
    given["model"].metadata.update(
        {"job": request.job, "framework": framework, **numbers, **(given.get("settings") or {})}
    )
    return request.job


def create(given: Mapping[str, Any], env: Mapping[str, str]) -> tuple[str, str]:
    """Makes an object and waits for it; returns its name and the requested value. Raises TrainyardError.

    On one machine it can't be made: the request is only checked, and the value is empty.
    """
    from trainyard.pipelines.steps.wish import ObjectRequest

    of = Run.of(env)
    wish = ObjectRequest.of(given, of)
    if of.local:
        print(f"ignored locally: {wish.title} is not made", flush=True)
        return wish.manifest["metadata"]["name"], ""
    from trainyard.pipelines.steps import cluster, objects
    from trainyard.pipelines.steps.jobs import Jobs

    return wish.manifest["metadata"]["name"], objects.run(wish, Jobs(cluster.connect(), of.namespace))


def _numbers(file: Path) -> dict[str, float]:
    """The numbers of the job's own metrics; none if it wrote none."""
    if not file.is_file():
        return {}
    try:
        found = json.loads(file.read_text())
    except ValueError:
        raise TrainyardError(f"the job's {METRICS} is not JSON", hint="write an object of names and numbers") from None
    if not isinstance(found, dict):
        raise TrainyardError(f"the job's {METRICS} is not an object", hint="write an object of names and numbers")
    return {key: value for key, value in found.items() if isinstance(value, (int, float)) and value == value}
