"""`trainyard runs show` of a training job."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from trainyard import structured
from trainyard.observe import words
from trainyard.training import actions, report
from trainyard.training import follow as following

if TYPE_CHECKING:
    from trainyard.kube import Kube


def show(kube: Kube, job: dict[str, Any], follow: bool, form: str) -> None:
    """Prints how it stands; with `follow` until it ends. Raises click's Exit with code 1 when it failed."""
    if not follow:
        snapshot = actions.poll(kube, job)
        if form in ("json", "yaml"):
            click.echo(structured.text(report.data(snapshot), form), nl=False)
        else:
            click.echo("\n".join(report.lines(kube, snapshot)))
        return
    end, name = following.follow(kube, job, take_away=False), job["metadata"]["name"]
    if end.succeeded:
        click.echo(f"{name} succeeded")
        return
    click.echo(f"{name} {'was stopped' if end.stopped else f'failed: {end.message}'}", err=True)
    for line in words.quoted(end.log):
        click.echo(line, err=True)
    raise click.exceptions.Exit(1)
