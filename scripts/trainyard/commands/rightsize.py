"""`trainyard rightsize`: what jobs used, and what to ask for instead."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from trainyard import structured
from trainyard.commands import common
from trainyard.errors import UsageError
from trainyard.kube import Access, options

if TYPE_CHECKING:
    from trainyard.rightsize import files, judged, usage

SUFFIXES = (".yaml", ".yml", ".json")


@click.command()
@click.argument("what", required=False, default="", metavar="[JOB|FILE]")
@click.option("--margin", type=click.FloatRange(10, 20), default=15, show_default=True, help="Percentage above usage.")
@click.option("--runs", type=click.IntRange(1, 10), default=10, show_default=True, help="Number of recent runs.")
@click.option("--patch", default="", metavar="FILE", help='Write the difference here ("-": print only that).')
@click.option("--write", is_flag=True, help="Write FILE instead of only showing the difference.")
@click.option("--svg", type=click.Path(dir_okay=False, path_type=Path), help="Also draw the runs' usage to this file.")
@click.option("--components", is_flag=True, help="Show values for the platform's own pods; for the platform engineer.")
@common.output("table", "json", "yaml")
@options
def rightsize(
    what: str,
    margin: float,
    runs: int,
    patch: str,
    write: bool,
    svg: Path | None,
    components: bool,
    form: str,
    access: Access,
) -> None:
    """Propose requests and limits from measured usage. The usage is that of a job's last runs. FILE is a manifest of
    jobs or trainyard.yaml: the proposal is shown as a difference that keeps comments and order. JOB is the name of a
    job or of one of its runs. Without either, all jobs of the team are listed.

    A CPU request covers 95 % of the time, a memory request the maximum usage, both plus the margin. docs/right-sizes.md
    describes the method and its benefit.
    """
    from trainyard.contract.find import system
    from trainyard.rightsize import evidence_svg, files, judged, usage, values
    from trainyard.training import detect

    path = Path(what) if what.endswith(SUFFIXES) or "/" in what else None
    if (patch or write) and path is None:
        raise UsageError("--patch and --write need a FILE", hint="pass the file that the job is created from")
    if patch and write:
        raise UsageError("--patch and --write exclude each other", hint="pass one of them")
    if components and what:
        raise UsageError("--components excludes JOB and FILE", hint="remove one of them")
    common.drawable(svg)
    file = files.read(what, common.read(what, "pass a file or a job"), detect.job_name(path.parent)) if path else None
    kube = access.connect()
    namespace = (access.namespace or system()) if components else kube.namespace
    if file and not access.namespace:
        named = {place.namespace for place in file.places if place.namespace}
        namespace = named.pop() if len(named) == 1 else namespace
    seen = usage.read(kube, namespace)
    if file:
        found = judged.of_file(file, seen, namespace, margin, runs)
        if not found:
            jobs = ", ".join(dict.fromkeys(place.job for place in file.places))
            raise UsageError(f"no measured run of {jobs} found in {namespace}", where=what, hint=_others(seen))
    elif what:
        job = seen.find(what)
        if job is None:
            raise UsageError(f"no measured run of {what} found in {namespace}", hint=_others(seen))
        found = judged.of_job(job, margin, runs)
    else:
        found = [one for job in seen.jobs.values() for one in judged.of_job(job, margin, runs, lower=not components)]
    if svg:
        svg.write_text(evidence_svg.draw(found), encoding="utf-8")
        click.echo(f"drawn in {svg}", err=True)
    if late := judged.age(seen):
        click.echo(f"warning: {late}", err=True)
    if components and form != "json":
        click.echo(values.text(found), nl=False)
    elif form != "table":
        click.echo(structured.text(judged.data(found, margin), form), nl=False)
    elif patch != "-":
        click.echo("\n".join(judged.table(found)) if found else "no measured runs yet")
    if file and path:
        _change(file, path, found, patch, write, shown=form == "table")


def _change(file: files.File, path: Path, found: list[judged.Judged], patch: str, write: bool, *, shown: bool) -> None:
    from trainyard.rightsize import files

    for one in found:
        if one.place and one.changes:
            one.place.apply(one.new)
    new = file.edited()
    difference = files.difference(file.name, file.text, new)
    if not difference:
        click.echo("the file already fits: no changes", err=True)
    elif write:
        path.write_bytes(new.encode())
        click.echo(difference if shown else "", nl=False)
        click.echo(f"written to {path}", err=True)
    elif patch and patch != "-":
        Path(patch).write_bytes(difference.encode())
        click.echo(f"difference written to {patch}; apply it with `git apply {patch}`", err=True)
    elif patch or shown:
        click.echo(difference if patch else f"\n{difference}", nl=False)
        if not patch:
            click.echo("to write the change, add --write", err=True)


def _others(seen: usage.Usage) -> str:
    names = list(seen.jobs)[:5]
    return f"measured jobs: {', '.join(names)}" if names else "measurement begins some minutes after a job starts"
