"""Commands under `trainyard chart`."""

import json
from pathlib import Path

import click

from trainyard.chart import helm
from trainyard.contract import render as render_contract
from trainyard.paths import OUT
from trainyard_dev.chart import other, parts, reference
from trainyard_dev.chart import package as packaging


def _profile(function: click.decorators.FC) -> click.decorators.FC:
    return click.option("--profile", type=click.Choice(parts.profiles()), default="kind", show_default=True)(function)


@click.group()
def chart() -> None:
    """Package, render and inspect the Helm chart."""


@chart.command()
@click.option("--out", type=click.Path(path_type=Path, file_okay=False), default=OUT, help="Folder to write to.")
@click.option("--with", "others", multiple=True, metavar="PART=VERSION",
              help="Package an upstream component in another version than the pinned one (untested).")  # fmt: skip
def package(out: Path, others: tuple[str, ...]) -> None:
    """Assemble the chart from its parts and package it."""
    wanted = other.asked(others)
    file = packaging.package(out, wanted)
    if wanted:
        click.echo(other.warning(wanted), err=True)
    click.echo(f"{file} ({file.stat().st_size / 1024:.0f} KiB)")


@chart.command()
@_profile
@click.option("--set", "sets", multiple=True, metavar="KEY=VALUE", help="Set a value, as with helm --set.")
def render(profile: str, sets: tuple[str, ...]) -> None:
    """Print all objects of a profile, including CRDs and hooks."""
    click.echo(packaging.template(profile, sets=sets))


@chart.command()
@_profile
def size(profile: str) -> None:
    """Print the size of the release's Secret."""
    used = packaging.release_secret_size(profile)
    click.echo(f"{used / 1024:.0f} KiB of {packaging.RELEASE_LIMIT / 1024:.0f}")


@chart.command("values-reference")
def values_reference() -> None:
    """Generate docs/values.md from the schema and the defaults."""
    changed = reference.write(reference.PAGE)
    click.echo(f"{reference.PAGE} {'written' if changed else 'is up to date'}")


@chart.command()
def contract() -> None:
    """Write the contract of the chart's defaults, which the CLI reads without a cluster."""
    render_contract.DEFAULTS.write_text(render_contract.text())
    click.echo(str(render_contract.DEFAULTS))


@chart.command()
@click.option("--release", default=helm.RELEASE, show_default=True, help="Name of the installed release.")
@click.option("-n", "--namespace", default=helm.NAMESPACE, show_default=True)
@click.option("--profile", type=click.Choice(parts.profiles()), help="Values of a profile, below those of --values.")
@click.option("--values", "files", multiple=True, type=click.Path(exists=True, dir_okay=False, path_type=Path),
              help="Values file, as with helm --values. Defaults to the release's values.")  # fmt: skip
@click.option("-o", "--output", type=click.Choice(["table", "json"]), default="table", show_default=True)
def diff(release: str, namespace: str, profile: str | None, files: tuple[Path, ...], output: str) -> None:
    """Show what an upgrade to this chart would do to an installed release; changes nothing.

    Ends with 1 when a verdict of a component blocks it or the API server would refuse it. Asks KUBECONFIG's cluster.
    """
    from trainyard.chart.release.installed import Installed
    from trainyard.kube.kubectl import Kubectl
    from trainyard_dev.chart import summary

    values = [*([parts.profile_file(profile)] if profile else []), *files]
    found = summary.of_tree(Installed(Kubectl(), release, namespace), values)
    click.echo(json.dumps(found.data(), indent=1) if output == "json" else summary.table(found))
    summary.refuse_blocked(found)
