"""Commands under `trainyard chart`."""

from __future__ import annotations

from pathlib import Path

import click

from trainyard.chart import package as packaging
from trainyard.chart import parts, reference
from trainyard.paths import OUT


def _profile(function: click.decorators.FC) -> click.decorators.FC:
    return click.option("--profile", type=click.Choice(parts.profiles()), default="kind", show_default=True)(function)


@click.group()
def chart() -> None:
    """Package, render and inspect the Helm chart."""


@chart.command()
@click.option("--out", type=click.Path(path_type=Path, file_okay=False), default=OUT, help="Folder that gets charts/.")
def package(out: Path) -> None:
    """Assemble the chart from its parts and package it."""
    file = packaging.package(out)
    click.echo(f"{file} ({file.stat().st_size / 1024:.0f} KiB)")


@chart.command()
@_profile
@click.option("--set", "sets", multiple=True, metavar="KEY=VALUE", help="A value, as for helm --set.")
def render(profile: str, sets: tuple[str, ...]) -> None:
    """Print every object of a profile, CRDs and hooks included."""
    click.echo(packaging.template(profile, sets=sets))


@chart.command()
@_profile
def images(profile: str) -> None:
    """List every image that a profile can start (for mirrors of air-gapped sites)."""
    for image in packaging.images(profile):
        click.echo(image)


@chart.command()
@_profile
def size(profile: str) -> None:
    """Print how large the release's Secret becomes."""
    used = packaging.release_secret_size(profile)
    click.echo(f"{used / 1024:.0f} KiB of {packaging.RELEASE_LIMIT / 1024:.0f}")


@chart.command("values-reference")
def values_reference() -> None:
    """Write docs/values.md out of the schema and the defaults."""
    changed = reference.write(reference.PAGE)
    click.echo(f"{reference.PAGE} {'written' if changed else 'is up to date'}")
