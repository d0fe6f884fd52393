"""Commands under `trainyard wheels`."""

from __future__ import annotations

import tempfile
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from trainyard import structured
from trainyard.commands.common import connected, output, say
from trainyard.errors import UsageError
from trainyard.kube import Access, options
from trainyard.training.wheels.tags import PYTHON

if TYPE_CHECKING:
    from trainyard.contract import Contract
    from trainyard.kube import Kube


@click.group()
def wheels() -> None:
    """Provide Python packages for runs of all teams. The object store keeps them. For the platform engineer."""


@wheels.command()
@click.argument("sources", nargs=-1, required=True, type=click.Path(path_type=Path), metavar="REQUIREMENTS|DIR...")
@click.option("--python", default=PYTHON, show_default=True, metavar="X.Y", help="Python version of the runs' images.")
@click.option("--without", multiple=True, metavar="NAME", help="Package to skip with its dependencies; images have it.")
@click.option("--index-url", default="", help="Package index for pip to use instead of its default.")
@click.option("--dry-run", is_flag=True, help="Print the wheels without uploading them.")
@options
def put(
    sources: tuple[Path, ...], python: str, without: tuple[str, ...], index_url: str, dry_run: bool, access: Access
) -> None:
    """Upload wheels to the store. The wheels are those that requirements files list, with dependencies, or those in a
    folder. pip on this machine selects them for the images' Python, not its own. Files that are already stored are not
    sent again, and runs install only files whose hash matches the uploaded one.

    \b
    trainyard wheels put requirements.txt --without torch
    """
    from trainyard.training.wheels import collect, send

    pip = [f"--index-url={index_url}"] if index_url else []
    found: dict[str, collect.LocalWheel] = {}
    with tempfile.TemporaryDirectory(prefix="trainyard-wheels-") as scratch:
        for number, source in enumerate(sources):
            target = Path(scratch) / str(number)
            target.mkdir()
            if not source.exists():
                raise UsageError("no such file or folder", where=str(source), hint="correct the path")
            made = (
                collect.folder(source, python)
                if source.is_dir()
                else collect.requirements(source, target, python, without, pip)
            )
            found |= {one.wheel.file: one for one in made}
        size = sum(one.size for one in found.values())
        click.echo(f"{len(found)} wheels, {size / 2**20:.1f} MiB", err=True)
        if dry_run:
            for one in found.values():
                click.echo(f"{one.sha256}  {one.wheel.file}")
            return
        kube, known = _platform(access)
        with send.store(kube, known) as store:
            new = send.put(store, list(found.values()), say)
            send.publish(kube, store)
    click.echo(f"{new} sent, {len(found) - new} already stored", err=True)


@wheels.command("list")
@output("table", "json", "yaml")
@options
def list_wheels(form: str, access: Access) -> None:
    """List the wheels in the store, with their SHA-256."""
    from trainyard.training.wheels import send

    kube, known = _platform(access)
    with send.store(kube, known) as store:
        found = send.publish(kube, store)
    rows: list[dict[str, Any]] = [
        {"name": one.wheel.name, "version": one.wheel.version, "size": one.size, "sha256": one.sha256,
         "file": one.wheel.file} for one in found
    ]  # fmt: skip
    if form != "table":
        click.echo(structured.text(rows, form), nl=False)
        return
    for row in rows:
        click.echo(f"{row['name']:30} {row['version']:16} {row['size'] / 2**20:8.1f} MiB  {row['sha256']}")


@wheels.command()
@click.argument("names", nargs=-1, required=True, metavar="NAME[==VERSION]|FILE...")
@click.option("--dry-run", is_flag=True, help="Print the wheels without removing them.")
@options
def remove(names: tuple[str, ...], dry_run: bool, access: Access) -> None:
    """Remove wheels from the store. NAME selects one version or all versions of a package, FILE a single wheel.
    Requirements that are already installed keep them; new ones no longer find them.

    \b
    trainyard wheels remove einops==0.8.0
    """
    from trainyard.training.wheels import send

    kube, known = _platform(access)
    with send.store(kube, known) as store:
        doomed = send.chosen(send.listed(store), names)
        if not dry_run:
            send.remove(store, doomed)
            send.publish(kube, store)
    for one in doomed:
        click.echo(f"{'would remove' if dry_run else 'removed'} {one.wheel.file}")


def _platform(access: Access) -> tuple[Kube, Contract]:
    """A client whose namespace is the release's, and what the chart has published."""
    _, known = connected(access)
    return replace(access, namespace=known.namespace).connect(), known
