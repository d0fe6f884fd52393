"""Commands under `trainyard runs`."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from trainyard import structured
from trainyard.errors import TrainyardError, UsageError
from trainyard.kube import Access, options
from trainyard.pipelines.runs.output import FORMATS

if TYPE_CHECKING:
    from trainyard.kube import Kube
    from trainyard.pipelines.runs.model import Run


def _complete(context: click.Context, parameter: click.Parameter, begun: str) -> list[str]:
    """Names of runs for the shell; silence when the cluster can't be asked."""
    from trainyard.pipelines.runs import actions

    given = context.params
    access = Access(
        given.get("kubeconfig") or "",
        given.get("context") or "",
        given.get("namespace") or "",
        given.get("as_user") or "",
        tuple(given.get("as_group") or ()),
    )
    try:
        return [name for name in actions.names(access.connect()) if name.startswith(begun)]
    except TrainyardError:
        return []


def _run(function: Callable[..., Any]) -> Callable[..., Any]:
    return click.argument("run", shell_complete=_complete)(function)


def _runs(function: Callable[..., Any]) -> Callable[..., Any]:
    return click.argument("names", metavar="RUN...", nargs=-1, required=True, shell_complete=_complete)(function)


def _output(*forms: str) -> Callable[..., Any]:
    return click.option("-o", "--output", "form", type=click.Choice(forms), default=forms[0], show_default=True)


@click.group()
def runs() -> None:
    """See, follow, stop, repeat and delete runs of pipelines."""


@runs.command("list")
@click.option("-e", "--experiment", default="", help="Only runs of this experiment.")
@click.option("--pipeline", default="", help="Only runs of this pipeline.")
@_output(*FORMATS)
@options
def list_(experiment: str, pipeline: str, form: str, access: Access) -> None:
    """List the team's runs, newest first."""
    from trainyard.pipelines.runs import actions, output

    kube = access.connect()
    found = actions.listed(kube, experiment=experiment, pipeline=pipeline)
    if form in ("json", "yaml"):
        click.echo(structured.text([output.data(run, steps=False) for run in found], form), nl=False)
    elif form == "name":
        click.echo("\n".join(run.name for run in found))
    elif found:
        click.echo(output.listing(found, wide=form == "wide"))
    else:
        of = [f"{word} {value}" for word, value in (("experiment", experiment), ("pipeline", pipeline)) if value]
        click.echo(f"no runs{' of ' * bool(of)}{' and '.join(of)} in {kube.namespace}", err=True)


@runs.command()
@_run
@click.option("-f", "--follow", is_flag=True, help="Stay until it ends; exit code 1 when it failed.")
@click.option("--lineage", is_flag=True, help="What made what from what, with digests.")
@_output(*FORMATS[:-1])
@options
def show(run: str, follow: bool, lineage: bool, form: str, access: Access) -> None:
    """Show a run's steps, and after a failure why."""
    from trainyard.pipelines.runs import explain, output, table
    from trainyard.pipelines.runs import follow as following
    from trainyard.pipelines.runs.scene import Observer

    if follow and (lineage or form != "table"):
        raise UsageError("--follow shows the table only", mend="leave out --lineage and -o")
    kube = access.connect()
    if follow:
        from trainyard.pipelines.runs.end import finish

        finish(kube, following.to_end(kube, run))
        return
    seen = Observer(kube, run).look()
    if lineage:
        from trainyard.pipelines.runs import lineage as made

        found = made.read(_lineage_files(kube, seen.run))
        if form in ("json", "yaml"):
            click.echo(structured.text(made.graph(found), form), nl=False)
        else:
            click.echo(made.tree(found, run))
    elif form in ("json", "yaml"):
        click.echo(structured.text(output.data(seen.run), form), nl=False)
    else:
        click.echo("\n".join(table.lines(seen, colour=sys.stdout.isatty(), wide=form == "wide")))
        if seen.run.ended and not seen.run.succeeded:
            click.echo("\n" + explain.text(seen.run, kube))


def _lineage_files(kube: Kube, run: Run) -> list[dict[str, Any]]:
    from trainyard.pipelines.runs import stored

    places = stored.lineage(run)
    if not places:
        raise TrainyardError(f"run {run.name} has left no lineage: no step has ended, or kfp made none of them")
    with stored.reached(kube) as store:
        return [json.loads(store.read(f"{place.bucket}/{place.key}")) for place in places]


@runs.command()
@_run
@click.argument("step", required=False)
@click.option("-f", "--follow", is_flag=True, help="Wait for the step to start and go on until it ends.")
@click.option("--tail", type=click.IntRange(min=0), help="Only the last lines.")
@click.option("--attempt", type=click.IntRange(min=1), help="Of which try; else of the last.")
@options
def logs(run: str, step: str | None, follow: bool, tail: int | None, attempt: int | None, access: Access) -> None:
    """Print the log of a step; without STEP, of all that ran, each line with its step's name.

    Where the pod is gone already, the log comes from the store.
    """
    from trainyard.pipelines.runs import logs as reading
    from trainyard.pipelines.runs import nodes, scene

    kube = access.connect()
    found = nodes.run(scene.fetch(kube, run))
    if step is None:
        if follow or attempt:
            raise UsageError("--follow and --attempt need a STEP", mend=f"`trainyard runs show {run}` names them")
        _all_logs(kube, found, tail)
        return
    chosen = found.find(step)
    for line in reading.lines(
        kube, found, chosen, follow=follow, tail=tail, attempt=attempt, say=lambda text: click.echo(text, err=True)
    ):
        _write(line)


def _all_logs(kube: Kube, run: Run, tail: int | None) -> None:
    from trainyard.pipelines.runs import logs as reading

    for each in run.steps:
        if not each.nodes and each.state != "cached":
            continue
        try:
            for line in reading.lines(kube, run, each, tail=tail):
                _write(f"{each.name}: ".encode() + line)
        except TrainyardError as error:
            click.echo(str(error), err=True)


def _write(line: bytes) -> None:
    sys.stdout.buffer.write(line + b"\n")
    sys.stdout.buffer.flush()


@runs.command()
@_runs
@options
def stop(names: tuple[str, ...], access: Access) -> None:
    """Stop runs: steps get SIGTERM, their training jobs are deleted, only a pipeline's exit task still starts."""
    from trainyard.pipelines.runs import actions

    kube = access.connect()
    for name in names:
        click.echo(f"run {name} {'is stopping' if actions.stop(kube, name) else 'had ended already'}")


@runs.command()
@_run
@click.option("-d", "--detach", is_flag=True, help="Do not follow it.")
@options
def retry(run: str, detach: bool, access: Access) -> None:
    """Run the failed steps of a run again, and what comes after them; what succeeded is kept."""
    from trainyard.pipelines.runs import actions, follow

    kube = access.connect()
    actions.retry(access, kube, run, lambda text: click.echo(text, err=True))
    click.echo(f"run {run} is tried again", err=True)
    if detach:
        click.echo(follow.again(run, kube.namespace), err=True)
        return
    from trainyard.pipelines.runs.end import finish

    finish(kube, follow.to_end(kube, run))


@runs.command()
@_runs
@click.option("--force", is_flag=True, help="Also runs that have not ended.")
@options
def delete(names: tuple[str, ...], force: bool, access: Access) -> None:
    """Delete runs and their pods. Artifacts, logs and lineage stay in the store."""
    from trainyard.pipelines.runs import actions, nodes, scene

    kube = access.connect()
    for name in names:
        found = nodes.run(scene.fetch(kube, name))
        if not found.ended and not force:
            raise UsageError(f"run {name} is {found.state}", mend="stop it first, or add --force")
        actions.delete(kube, name)
        click.echo(f"run {name} deleted")


@runs.command()
@_run
@click.argument("artifact", metavar="[STEP/ARTIFACT]", required=False)
@click.option("--to", type=click.Path(path_type=Path), help="Where to put it; else its name, in this folder.")
@_output("table", "json", "yaml")
@options
def artifacts(run: str, artifact: str | None, to: Path | None, form: str, access: Access) -> None:
    """List what a run left in the store, or fetch one artifact of it."""
    from trainyard.pipelines.runs import nodes, output, scene, stored

    kube = access.connect()
    found = nodes.run(scene.fetch(kube, run))
    if artifact is None:
        if to is not None:
            raise UsageError("--to needs an artifact", mend="name one as STEP/ARTIFACT")
        places = stored.artifacts(found)
        if form == "table":
            rows = [["STEP", "ARTIFACT", "URI"], *([one.step, one.name, one.uri] for one in places)]
            click.echo(output.columns(rows) if places else f"run {run} has left no artifacts", err=not places)
        else:
            listed = [{"step": one.step, "artifact": one.name, "uri": one.uri} for one in places]
            click.echo(structured.text(listed, form), nl=False)
        return
    place = stored.find(found, artifact)
    target = to or Path(place.name)
    if target.exists():
        raise UsageError(f"{target} is already there", mend="choose another place with --to")
    with stored.reached(kube) as store:
        stored.fetch(store, place, target)
    click.echo(f"{place.uri} -> {target}")
