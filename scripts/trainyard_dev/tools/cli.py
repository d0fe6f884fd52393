"""Commands under `trainyard tools`."""

import click

from trainyard_dev.tools import build as builder
from trainyard_dev.versions import load

PURPOSES = ("host", "cluster", "test", "bench", "demand")


@click.group()
def tools() -> None:
    """Build and find binaries from pinned Go modules."""


@tools.command()
@click.option("--for", "purposes", multiple=True, type=click.Choice(PURPOSES), help="Only tools of this purpose.")
def build(purposes: tuple[str, ...]) -> None:
    """Build the tools that the cache lacks."""
    if not builder.ensure(purposes or PURPOSES):
        click.echo("all tools are in the cache")


@tools.command()
@click.argument("name")
@click.option("--version", default="", help="Version such as 1.35, if versions.yaml has several.")
def path(name: str, version: str) -> None:
    """Print the path of a binary; build the binary if the cache lacks it."""
    click.echo(builder.binary(name, version))


@tools.command("list")
def list_tools() -> None:
    """List all tool sets with version and state."""
    for tool in load().tools.values():
        state = "built" if builder.is_built(tool) else "not built"
        click.echo(f"{tool.name:24}{tool.version:40.40}{tool.purpose:9}{state}")
