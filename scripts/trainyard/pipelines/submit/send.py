"""Creates a run and follows one step's log."""

import sys
import time
from typing import Any

import click

from trainyard.errors import TrainyardError
from trainyard.kube import Kube, KubeError, caller
from trainyard.pipelines.runs import follow, logs, nodes, snapshot

POLL_INTERVAL_S = 2.0


def create(kube: Kube, workflow: dict[str, Any]) -> dict[str, Any]:
    """Creates the Workflow, annotated with its submitter. Raises KubeError with admission's message."""
    caller.sign(kube, workflow)
    return put(kube, workflow, "run", "delete it with `trainyard runs delete`, or give the workflow a generateName")


def put(kube: Kube, obj: dict[str, Any], what: str, hint: str) -> dict[str, Any]:
    """Creates one of Argo's objects. `hint` is the fix if one of that name exists already."""
    try:
        return kube.create(obj)
    except KubeError as error:
        if error.status == 409:
            name = obj["metadata"].get("name")
            raise TrainyardError(f"{what} {name} already exists in {kube.namespace}", hint=hint) from None
        if error.status == 404:
            raise TrainyardError(
                f"this cluster runs no pipelines: {error.what}",
                where=kube.host,
                hint="ask your platform engineer for them",
            ) from None
        raise


def follow_log(kube: Kube, name: str, step: str) -> None:
    """Prints one step's log until it ends. Ctrl-C only ends the following, and a message says so."""
    try:
        run = nodes.run(snapshot.fetch(kube, name))
        while not any(step in (one.name, one.path[-1], one.id) for one in run.steps) and not run.ended:
            if run.steps and run.phase == "Running" and not _may_come(run, step):
                run.find(step)
            time.sleep(POLL_INTERVAL_S)
            run = nodes.run(snapshot.fetch(kube, name))
        chosen = run.find(step)
        for line in logs.lines(kube, run, chosen, follow=True, say=lambda text: click.echo(text, err=True)):
            sys.stdout.buffer.write(line + b"\n")
            sys.stdout.buffer.flush()
    except KeyboardInterrupt:
        click.echo(f"\nthe run goes on. {follow.again(name, kube.namespace)}", err=True)
        raise


def _may_come(run: Any, step: str) -> bool:
    """Whether a step of that name can still appear: within a group, or by the name of a template's task."""
    last = step.rsplit("/", 1)[-1]
    templates = run.raw.get("spec", {}).get("templates") or []
    tasks = {task["name"] for template in templates for task in (template.get("dag") or {}).get("tasks", [])}
    return last.split("(")[0] in tasks
