"""Commands under `trainyard runs`."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from trainyard import structured
from trainyard.commands import common
from trainyard.commands.run_names import complete, complete_pipelines
from trainyard.commands.runs_compare import compare
from trainyard.commands.runs_logs import logs
from trainyard.commands.runs_tensorboard import tensorboard
from trainyard.errors import TrainyardError, UsageError
from trainyard.kube import Access, KubeError, options
from trainyard.observe.listing import FORMATS
from trainyard.terminal import coloured

if TYPE_CHECKING:
    from trainyard.kube import Kube
    from trainyard.pipelines.runs.model import Run


_run = click.argument("run", metavar="NAME", shell_complete=complete)
_runs = click.argument("names", metavar="NAME...", nargs=-1, required=True, shell_complete=complete)
_pipeline = click.argument("run", metavar="RUN", shell_complete=complete_pipelines)


@click.group()
def runs() -> None:
    """Show, follow, stop, retry and delete runs. A run is a run of a pipeline or a training job. If both have the same
    name, write pipeline/NAME or job/NAME.
    """


runs.add_command(compare)
runs.add_command(logs)
runs.add_command(tensorboard)


@runs.command("list")
@click.option("-e", "--experiment", default="", help="Only runs of this experiment.")
@click.option("--pipeline", default="", help="Only runs of this pipeline.")
@common.output(*FORMATS)
@options
def list_(experiment: str, pipeline: str, form: str, access: Access) -> None:
    """List the team's runs, newest first. Includes runs of pipelines and training jobs, without jobs created by
    pipeline steps.
    """
    from trainyard.commands import runs_list
    from trainyard.observe import listing

    kube = access.connect()
    found = runs_list.found(kube, experiment=experiment, pipeline=pipeline)
    if form in ("json", "yaml"):
        click.echo(structured.text(runs_list.data(kube, *found), form), nl=False)
    elif form == "name":
        click.echo("\n".join(runs_list.of(*found)))
    elif any(found):
        click.echo(listing.table(runs_list.rows(kube, *found), wide=form == "wide"))
    else:
        of = [f"{word} {value}" for word, value in (("experiment", experiment), ("pipeline", pipeline)) if value]
        click.echo(f"no runs{' of ' * bool(of)}{' and '.join(of)} in {kube.namespace}", err=True)


@runs.command()
@_run
@click.option("-f", "--follow", is_flag=True, help="Follow the run to its end; exit code 1 if the run fails.")
@click.option("--lineage", is_flag=True, help="Show the inputs and outputs of each task, with digests.")
@common.output(*FORMATS[:-1])
@options
def show(run: str, follow: bool, lineage: bool, form: str, access: Access) -> None:
    """Show a run: its steps or pods, and why it waits or failed."""
    from trainyard.commands.run_names import PIPELINE, NamedRun, named, pipeline
    from trainyard.pipelines.runs import explain, output, table
    from trainyard.pipelines.runs import follow as following
    from trainyard.pipelines.runs.snapshot import Observer

    if follow and (lineage or form != "table"):
        raise UsageError("--follow only shows the table", hint="remove --lineage and -o")
    kube = access.connect()
    this = NamedRun(run.removeprefix(f"{PIPELINE}/")) if lineage else named(kube, run)
    if this.job:
        from trainyard.commands import runs_jobs

        runs_jobs.show(kube, this.job, follow, form)
        return
    run = this.name
    if follow:
        from trainyard.pipelines.runs.end import finish

        finish(kube, following.to_end(kube, run))
        return
    try:
        seen = Observer(kube, run).poll()
    except KubeError as error:
        if lineage and error.status == 404:
            pipeline(kube, run, "has no lineage", "show the job with `trainyard runs show {name}`")
        raise
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
        click.echo("\n".join(table.lines(seen, colour=coloured(sys.stdout), wide=form == "wide")))
        if seen.run.ended and not seen.run.succeeded:
            click.echo("\n" + explain.text(seen.run, kube))


def _lineage_files(kube: Kube, run: Run) -> list[dict[str, Any]]:
    from trainyard.pipelines.runs import stored

    places = stored.lineage(run)
    if not places:
        raise TrainyardError(f"no lineage found for run {run.name}: no step has ended, or kfp created none of them")
    with stored.reached(kube) as store:
        return [json.loads(store.read(f"{place.bucket}/{place.key}")) for place in places]


@runs.command()
@_runs
@options
def stop(names: tuple[str, ...], access: Access) -> None:
    """Stop runs, but keep their output. Their pods get SIGTERM. Stopping a pipeline run deletes its training jobs; only
    its exit task still starts. A stopped training job is kept for inspection, except a Volcano Job, which is deleted.
    """
    from trainyard.commands.run_names import named
    from trainyard.pipelines.runs import actions
    from trainyard.training import actions as of_jobs

    kube = access.connect()
    for this in [named(kube, name) for name in names]:
        if this.job:
            click.echo(of_jobs.stop(kube, this.job))
            continue
        name = this.name
        click.echo(f"run {name} {'is stopping' if actions.stop(kube, name) else 'has already ended'}")


@runs.command()
@_pipeline
@click.option("-d", "--detach", is_flag=True, help="Return without following the run.")
@options
def retry(run: str, detach: bool, access: Access) -> None:
    """Run the failed steps of a run again. Also runs the steps after them; successful steps keep their results."""
    from trainyard.commands.run_names import pipeline
    from trainyard.pipelines.runs import actions, follow

    kube = access.connect()
    again = "submit the job again with `trainyard train`; --resume {name} starts from its checkpoints"
    run = pipeline(kube, run, "can't be retried", again)
    actions.retry(access, kube, run, common.say)
    click.echo(f"retrying run {run}", err=True)
    if detach:
        click.echo(follow.again(run, kube.namespace), err=True)
        return
    from trainyard.pipelines.runs.end import finish

    finish(kube, follow.to_end(kube, run))


@runs.command()
@_runs
@click.option("--force", is_flag=True, help="Also delete runs that have not ended.")
@options
def delete(names: tuple[str, ...], force: bool, access: Access) -> None:
    """Delete runs with their pods. Artifacts, logs, lineage and results stay in the store."""
    from trainyard.commands.run_names import named
    from trainyard.pipelines.runs import actions, nodes, snapshot
    from trainyard.training import actions as of_jobs

    kube = access.connect()
    for this in [named(kube, name) for name in names]:
        if this.job:
            click.echo(of_jobs.delete(kube, this.job, force=force))
            continue
        name = this.name
        found = nodes.run(snapshot.fetch(kube, name))
        if not found.ended and not force:
            raise UsageError(f"run {name} is {found.state}", hint="stop the run first, or add --force")
        actions.delete(kube, name)
        click.echo(f"run {name} deleted")


@runs.command()
@_pipeline
@click.argument("artifact", metavar="[STEP/ARTIFACT]", required=False)
@click.option("--to", type=click.Path(path_type=Path), help="File to write to. Default: its name, in this folder.")
@common.output("table", "json", "yaml")
@options
def artifacts(run: str, artifact: str | None, to: Path | None, form: str, access: Access) -> None:
    """List the artifacts of a run, or fetch one."""
    from trainyard.commands.run_names import pipeline
    from trainyard.observe.listing import columns
    from trainyard.pipelines.runs import nodes, snapshot, stored

    kube = access.connect()
    run = pipeline(kube, run, "has no artifacts", "fetch its results with `trainyard train --attach {name}`")
    found = nodes.run(snapshot.fetch(kube, run))
    if artifact is None:
        if to is not None:
            raise UsageError("--to needs an artifact", hint="pass STEP/ARTIFACT")
        places = stored.artifacts(found)
        if form == "table":
            rows = [["STEP", "ARTIFACT", "URI"], *([one.step, one.name, one.uri] for one in places)]
            click.echo(columns(rows) if places else f"no artifacts found for run {run}", err=not places)
        else:
            listed = [{"step": one.step, "artifact": one.name, "uri": one.uri} for one in places]
            click.echo(structured.text(listed, form), nl=False)
        return
    place = stored.find(found, artifact)
    target = to or Path(place.name)
    if target.exists():
        raise UsageError(f"{target} already exists", hint="choose another file with --to")
    with stored.reached(kube) as store:
        stored.fetch(store, place, target)
    click.echo(f"{place.uri} -> {target}")
