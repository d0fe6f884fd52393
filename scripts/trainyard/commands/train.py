"""Commands `trainyard train` and `trainyard init`."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from trainyard import structured
from trainyard.commands.common import cluster_for, contract_file, contract_of, say
from trainyard.errors import TrainyardError, UsageError
from trainyard.kube import Access, options
from trainyard.training.settings import FILE, Settings, flags, merged

if TYPE_CHECKING:
    from trainyard.kinds import JobSpec, TeamConfig
    from trainyard.kube import Kube
    from trainyard.training.follow import End
    from trainyard.training.launch import Advice

BUILD = (
    "can't build an image in a team's namespace: pods there may neither run as root nor create user namespaces, "
    "which image builders need"
)


@click.command()
@click.argument("command", nargs=-1, type=click.UNPROCESSED, metavar="[-- COMMAND...]")
@flags
@click.option("--dir", "folder", default=".", type=click.Path(path_type=Path), help="The code's folder.")
@click.option("--file", type=click.Path(path_type=Path), help=f"Settings file. Default: {FILE} in the code's folder.")
@click.option("--resume", default="", metavar="RUN", help="Earlier run whose checkpoints to start from.")
@click.option("--attach", default="", metavar="RUN", help="Existing run to follow and fetch results from.")
@click.option("--after-started", is_flag=True, help="Submit the job once your team's queued jobs have started.")
@click.option("--detach", is_flag=True, help="Return without following the job.")
@click.option("--fetch/--no-fetch", default=True, help="Fetch the results into the code's folder at the end.")
@click.option("--dry-run", is_flag=True, help="Print the objects without creating them.")
@click.option("-o", "--output", "form", type=click.Choice(("yaml", "json")), default="yaml", help="Dry-run format.")
@contract_file
@click.option("--build", is_flag=True, help="Not supported: see docs/train.md.")
@options
def train(
    command: tuple[str, ...],
    settings: Settings,
    folder: Path,
    file: Path | None,
    resume: str,
    attach: str,
    after_started: bool,
    detach: bool,
    fetch: bool,
    dry_run: bool,
    form: str,
    contract_file: Path | None,
    build: bool,
    access: Access,
) -> int | None:
    """Train the code of this folder in the cluster. Uploads the code, queues and follows the job, and fetches results.

    \b
    trainyard train --nodes 2 --gpus 2 --framework pytorch -- python train.py --epochs 3
    """
    from trainyard.kinds import TeamConfig
    from trainyard.training import launch

    if build:
        raise UsageError(BUILD, hint="remove --build to use a base image, or pass --image with an image that you built")
    if not folder.is_dir():
        raise UsageError("no such folder", where=str(folder), hint="correct --dir")
    found = merged(folder, file, settings, command)
    access = replace(access, namespace=access.namespace or found.get("team", ""))
    if attach:
        own = access.connect()
        team_config = TeamConfig.of(contract_of(own, contract_file), own.namespace)
        return _attached(own, team_config, attach, folder, found, fetch)

    kube = cluster_for(access, contract_file, access.namespace) if dry_run else access.connect()
    known = contract_of(kube, contract_file)
    team_config = TeamConfig.of(known, access.namespace if kube is None else kube.namespace)
    with tempfile.TemporaryDirectory(prefix="trainyard-") as scratch:
        ready = launch.prepare(folder, found, team_config, Path(scratch) / "code.tar.gz", resume=resume)
        if dry_run or kube is None:
            _tell(one for one in ready.advice if one.level != launch.SENT)
            click.echo(structured.text(ready.manifest, form), nl=False)
            return None
        _tell(ready.advice)
        _tell(launch.linted(ready, known))
        _tell(launch.Advice(launch.HINT, text) for text in _sizes(kube, ready.manifest))
        if after_started:
            _wait_for_turn(kube, ready.spec, team_config)
        new = launch.submit(kube, team_config, ready)
    click.echo(f"{'code sent' if new else 'code unchanged, not sent'}; created {ready.spec.name}", err=True)
    if detach:
        click.echo(f"follow the job: trainyard train -n {team_config.team.name} --attach {ready.spec.name}", err=True)
        click.echo(ready.spec.name)
        return None
    return _follow(kube, team_config, ready.manifest, folder, ready.spec.results, fetch)


@click.command()
@click.option("--dir", "folder", default=".", type=click.Path(path_type=Path), help="The code's folder.")
@click.option("--force", is_flag=True, help=f"Overwrite an existing {FILE}.")
def init(folder: Path, force: bool) -> None:
    """Write a trainyard.yaml for the code in this folder."""
    from trainyard.training import starter

    if not folder.is_dir():
        raise UsageError("no such folder", where=str(folder), hint="correct --dir")
    for line in starter.write(folder, force=force):
        click.echo(line)


def _wait_for_turn(kube: Kube, spec: JobSpec, team_config: TeamConfig) -> None:
    from trainyard.pipelines.submit import turn

    turn.wait(kube, spec.queue or team_config.team.queues[0], spec.priority or team_config.team.priority, say)


def _attached(kube: Kube, team_config: TeamConfig, run: str, folder: Path, found: Settings, fetch: bool) -> int:
    from trainyard.kinds import JobSpec
    from trainyard.observe import jobs

    results = found.get("results") or JobSpec.results
    return _follow(kube, team_config, jobs.find(kube, run), folder, results, fetch)


def _follow(
    kube: Kube, team_config: TeamConfig, manifest: dict[str, Any], folder: Path, results: str, fetch: bool
) -> int:
    """Follows, fetches, and returns the exit code of the job."""
    from trainyard.training import follow

    name = manifest["metadata"]["name"]
    try:
        end = follow.follow(kube, manifest)
        if fetch and end.ran:
            _brought(kube, team_config, name, folder / results / name, results)
    except KeyboardInterrupt:
        _left(kube, manifest)
        raise click.exceptions.Exit(130) from None
    return _report(end, name)


def _brought(kube: Kube, team_config: TeamConfig, name: str, target: Path, results: str) -> None:
    from trainyard.training import launch

    try:
        files = launch.bring(kube, team_config, name, results, target)
    except TrainyardError as error:
        click.echo(f"failed to fetch the results: {error}", err=True)
        return
    text = f"{len(files)} files in {target}" if files else f"rank 0 wrote nothing to {results}/"
    click.echo(f"results: {text}", err=True)


def _left(kube: Kube, manifest: dict[str, Any]) -> None:
    name = manifest["metadata"]["name"]
    click.echo(f"\n{name} continues. Follow it:  trainyard train -n {kube.namespace} --attach {name}", err=True)
    click.echo(f"Stop it:  trainyard runs stop -n {kube.namespace} {name}", err=True)


def _report(end: End, name: str) -> int:
    if end.succeeded:
        click.echo(f"{name} succeeded", err=True)
        return 0
    text = "was stopped" if end.stopped else f"failed: {end.message}"
    click.echo(f"error: {name} {text}", err=True)
    return end.code


def _sizes(kube: Kube, manifest: dict[str, Any]) -> list[str]:
    """Where it asks for far more or less than its last runs used, as far as that can be read by one request."""
    from trainyard.rightsize import hints

    seen = hints.known(kube, kube.namespace)
    return hints.of_job(manifest, seen) if seen else []


def _tell(advice: Iterable[Advice]) -> None:
    for one in advice:
        click.echo(f"{one.level}: {one.text}" if one.level in ("warning", "hint") else one.text, err=True)
