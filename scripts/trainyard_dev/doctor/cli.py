"""The command `trainyard doctor`."""

import json
import sys

import click

from trainyard.terminal import coloured
from trainyard_dev.doctor import examine, table
from trainyard_dev.doctor.finding import Wanted, healthy
from trainyard_dev.doctor.probes import Machine


@click.command()
@click.option("--images", default="auto", type=click.Choice(["auto", "pull", "build"]), show_default=True)
@click.option("--gpu", default="auto", type=click.Choice(["auto", "mock", "real"]), show_default=True)
@click.option("--provider", default="auto", type=click.Choice(["auto", "docker", "podman"]), show_default=True)
@click.option("-o", "--output", default="table", type=click.Choice(["table", "json"]), show_default=True)
@click.pass_context
def doctor(context: click.Context, images: str, gpu: str, provider: str, output: str) -> None:
    """Check this machine, and show how to fix what it lacks. Exits with 0 if nothing is missing, otherwise with 1."""
    findings = examine(Machine(), Wanted(images, gpu, provider))
    if output == "json":
        click.echo(json.dumps(table.data(findings), indent=2, ensure_ascii=False))
    else:
        colour = coloured(sys.stdout)
        click.echo(table.render(findings, colour=colour), nl=False, color=colour)
    context.exit(0 if healthy(findings) else 1)
