"""Commands under `trainyard versions`."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
import yaml

from trainyard.errors import TrainyardError
from trainyard.paths import ROOT
from trainyard_dev.chart import parts
from trainyard_dev.images import crane, packages
from trainyard_dev.sync import charts, images, invariants, kinds, modules, pages, texts
from trainyard_dev.sync import digests as digests_of_images
from trainyard_dev.sync import wheels as pins_of_images
from trainyard_dev.sync.tree import Tree
from trainyard_dev.versions import read


@click.group()
def versions() -> None:
    """Manage the pins of versions.yaml and their copies."""


@versions.command()
@click.option("--check", is_flag=True, help="Change nothing; exit with 1 if a copy differs.")
def sync(check: bool) -> None:
    """Write every copy of a pin, then every generated page.

    Change a version in versions.yaml and run this. What can't be written is reported at the end, with what
    to do about it.
    """
    tree = write(ROOT, dry=check)
    for file, said in sorted(tree.changed.items()):
        click.echo(f"{file}: {', '.join(said)}")
    if check:
        if tree.changed:
            raise TrainyardError(f"copies differ in {_files(tree)}", hint="run `bin/trainyard versions sync`")
        click.echo("every copy matches versions.yaml")
        return
    left = sorted({*tree.left, *invariants.differences(ROOT, read(ROOT))})
    for line in left:
        click.echo(f"left: {line}")
    if left:
        raise TrainyardError(f"{len(left)} differences that you must fix by hand", hint="fix the files listed above")
    click.echo(f"written: {_files(tree)}" if tree.changed else "every copy matches versions.yaml")


@versions.command()
@click.option("--all", "again", is_flag=True, help="Download all hashes and dependencies again.")
def wheels(again: bool) -> None:
    """Write the Python pins of images, with hashes: requirements.txt of each.

    They follow requirements.lock and images/requirements.yaml. What a package asks for and an image lacks is reported.
    """
    written, unmet = pins_of_images.compile_all(ROOT, pins_of_images.ask, again=again)
    for line in [*(f"written: {file}" for file in written), *unmet]:
        click.echo(line)
    if unmet:
        hint = f"add the missing packages to {packages.LIST}, or list them under `without`"
        raise TrainyardError(f"images lack required packages: {len(unmet)}", hint=hint)
    if not written:
        click.echo("every image pins its packages")


@versions.command()
def digests() -> int:
    """Ask registries for the digests of upstream's images, and write those that are unproved.

    Exit code 1: a tag has another digest than the pinned one, or is gone. What was not asked stays unproved.
    """
    told = digests_of_images.fill(ROOT, crane.digest)
    for one in told:
        click.echo(f"{one.name}: {one.said}")
    return int(any(one.bad for one in told))


def write(root: Path, *, dry: bool = False, upstream: Callable[[str], str | None] | None = None) -> Tree:
    """All copies of a tree.

    Args:
        dry: change nothing. Pages are then compared with what the tree says before the changes.
        upstream: the version of a chart in a Go module, None where it is unknown; left out: asks the module.
    """
    raw, tree = read(root), Tree(root, dry=dry)
    modules.go_modules(tree, raw)
    texts.python(tree, raw)
    kinds.values(tree, str(raw["trainyard"]))
    images.write(tree, raw)
    texts.prose(tree, raw)
    charts.components(tree, raw)
    charts.picture(tree)
    charts.values(tree, raw)
    charts.meta(tree, raw, upstream or _upstream)
    charts.ceiling(tree)
    tree.save()
    charts.releases(tree, raw)
    tree.save()
    pages.write(tree)
    tree.save()
    return tree


def _upstream(name: str) -> str | None:
    if name not in {part.name for part in parts.upstream()}:
        return None
    try:
        meta: dict[str, Any] = yaml.safe_load((parts.chart_folder(name) / "Chart.yaml").read_text())
    except (TrainyardError, OSError):
        return None  # its module can't be had: `verify` compares what it can
    return str(meta["version"]).removeprefix("v")


def _files(tree: Tree) -> str:
    return f"{len(tree.changed)} file{'' if len(tree.changed) == 1 else 's'}"
