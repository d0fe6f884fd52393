"""The end of a run that was followed: one line, the reasons of a failure, and the exit code."""

import click

from trainyard.kube import Kube
from trainyard.pipelines.runs import explain, nodes, output
from trainyard.pipelines.runs.model import Run
from trainyard.times import now, span


def finish(kube: Kube, run: Run, programs: bool = False) -> None:
    """Prints the run's result; raises click's Exit with code 1 if it failed or was stopped.

    Args:
        programs: a program reads standard output, so everything is printed on standard error.
    """
    took = span(run.seconds(now()))
    if run.succeeded:
        cached = sum(step.state == "cached" for step in run.steps)
        from_cache = f", {cached} of {len(run.steps)} steps from the cache" if cached else ""
        click.echo(f"run {run.name} succeeded in {took}{from_cache}", err=programs)
        for name, value in results(run).items():
            click.echo(f"  {name} = {value}", err=programs)
        return
    click.echo(explain.text(run, kube), err=True)
    click.echo(f"run {run.name} {'was stopped' if run.stopping else 'failed'} after {took}", err=True)
    raise click.exceptions.Exit(1)


def results(run: Run) -> dict[str, str]:
    """The pipeline's own output parameters, from its outermost graph."""
    root = next((node for node in nodes.of(run.raw).values() if node["name"] == run.name), {})
    parameters = (root.get("outputs") or {}).get("parameters") or []
    return {one["name"]: str(one.get("value", "")) for one in parameters if shown(one["name"])}


def shown(name: str) -> bool:
    """Whether a parameter is the author's, not added by the translation."""
    return not name.startswith(output.HIDDEN)
