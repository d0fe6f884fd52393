"""Commands under `trainyard images`."""

import dataclasses
import json
from contextlib import AbstractContextManager
from pathlib import Path

import click

from trainyard.errors import UsageError
from trainyard.paths import ROOT
from trainyard_dev import engine as engines
from trainyard_dev.chart import images as listing
from trainyard_dev.chart import parts
from trainyard_dev.images import build as builder
from trainyard_dev.images import contents, crane, registry, source
from trainyard_dev.mirror import pinned, sources
from trainyard_dev.progress import Progress
from trainyard_dev.versions import load as load_versions

_wanted = click.option("--images", "wanted", default="auto", show_default=True, help="auto, pull or build.")
_platform = click.option("--platform", default="", metavar="OS/ARCH", help="Only this platform of each image.")
_pins = click.option("--pins", type=click.Path(dir_okay=False, path_type=Path), metavar="FILE",
                     help="Write values with our images by digest to this file.")  # fmt: skip
_cuda = click.option("--cuda", is_flag=True, help="Include images with CUDA (several GB each).")
_plain = click.option("--plain-http", "plain", is_flag=True, help="Use HTTP: the registry has no TLS.")


def _selection(function: click.decorators.FC) -> click.decorators.FC:
    """Adds the options that select an installation."""
    profile = click.option("--profile", type=click.Choice(parts.profiles()), default="kind", show_default=True)
    file = click.Path(exists=True, dir_okay=False, path_type=Path)
    values = click.option("--values", "files", multiple=True, type=file, help="Values file, as with helm --values.")
    return profile(values(function))


@click.group()
def images() -> None:
    """Container images of the platform and of the test cluster."""


@images.command("list")
@_selection
@click.option("-o", "--output", type=click.Choice(["table", "json"]), default="table", show_default=True)
def list_images(profile: str, files: tuple[Path, ...], output: str) -> None:
    """List every image that an installation can start: pods, hooks, tests, what operators add to jobs, the examples.

    With a mirror in the values (global.imageRegistry) the second column is where nodes pull it.
    """
    found = listing.listed(profile, values=files)
    if output == "json":
        click.echo(json.dumps([dataclasses.asdict(image) for image in found], indent=1))
        return
    for image in found:
        pulled = f"{image.pulled:80}" if image.pulled != image.ref else ""
        click.echo(f"{image.ref:64}{pulled}{'ours' if image.own else 'upstream':10}{', '.join(image.uses)}")


@images.command()
@_selection
@_wanted
@_cuda
@_platform
@click.argument("target", metavar="FILE.tar|DIR", type=click.Path(path_type=Path))
def save(target: Path, profile: str, files: tuple[Path, ...], wanted: str, cuda: bool, platform: str) -> None:
    """Save every image of an installation as an OCI layout: one tar file, or a folder.

    An interrupted save goes on where it was. A tar file needs twice its room while it is made.
    """
    with _readable(profile, files, wanted, cuda) as items:
        crane.save(items, target, platform=platform)


@images.command()
@_plain
@_pins
@click.argument("archive", metavar="FILE.tar|DIR", type=click.Path(path_type=Path, exists=True))
@click.argument("prefix", metavar="HOST[/PATH]")
def load(archive: Path, prefix: str, plain: bool, pins: Path | None) -> None:
    """Push saved images to a registry, under the prefix for global.imageRegistry."""
    _done(crane.load(archive, prefix, plain=plain), prefix, pins)


@images.command()
@_selection
@_wanted
@_cuda
@_platform
@_plain
@_pins
@click.option("--own", is_flag=True, help="Only our own images, all of them: for global.ownImageRegistry.")
@click.argument("prefix", metavar="HOST[/PATH]")
def mirror(prefix: str, profile: str, files: tuple[Path, ...], wanted: str, cuda: bool, platform: str, plain: bool,
           pins: Path | None, own: bool) -> None:  # fmt: skip
    """Copy every image of an installation into a registry, without a file between.

    The command builds images that are not published, prints the size of each image, and copies those that the
    registry lacks. To resume after an interruption, repeat it. Log in to the registry with docker or podman first.
    """
    to = crane.checked(prefix)  # before anything is built
    refs = [image.ref for image in load_versions().ours] if own else None
    with _readable(profile, files, wanted, cuda, refs) as items:
        _done(crane.mirror(items, to, plain=plain, platform=platform), to, pins, pinned.OURS if own else pinned.MIRROR)


def _done(pushed: dict[str, str], prefix: str, pins: Path | None, key: str = pinned.MIRROR) -> None:
    for ref, digest in pushed.items():
        click.echo(f"{ref}@{digest}")
    if pins:
        pins.write_text(pinned.text(pushed, prefix.rstrip("/"), key))
        click.echo(f"written: {pins}, for helm --values")


def _readable(
    profile: str, files: tuple[Path, ...], wanted: str, cuda: bool, refs: list[str] | None = None
) -> AbstractContextManager[list[crane.Item]]:
    refs = refs or [image.ref for image in listing.listed(profile, values=files)]
    large = {image.ref: image for image in load_versions().images.values() if image.large and not cuda}
    if omitted := [large[ref] for ref in refs if ref in large]:
        named = ", ".join(f"{image.name} ({image.large} GB)" for image in omitted)
        click.echo(f"Omitted: {named}. To include them, add --cuda.")
    return sources.readable(engines.find(), [ref for ref in refs if ref not in large], wanted)


@images.command()
@_wanted
@click.argument("names", nargs=-1, metavar="[NAME...]")
def build(wanted: str, names: tuple[str, ...]) -> None:
    """Build every image that this machine would need and the cache lacks, or those of versions.yaml that are named.

    Images with CUDA have several GB each and are built only by name.
    """
    known = load_versions().images
    for name in names:
        if name not in known:
            raise UsageError(f"unknown image: {name}", hint=f"use one of {', '.join(known)}")
    engine, chosen = engines.find(), source.choose(wanted)
    base = chosen.base(engine)
    needed = [i for i in known.values() if (i.own or i.local or chosen.kind == "build") and not i.large]
    needed = [i for i in needed if chosen.kind == "build" or i.name != "node"]
    needed = [known[name] for name in names] or needed
    missing = [i for i in needed if not (registry.is_pushed(i, base) or engine.has_image(builder.local_ref(i, base)))]
    progress = Progress(len(missing), f"Images ({chosen.kind}: {chosen.reason})")
    for image in missing:
        with progress.step(image.ref):
            builder.build(engine, image, base)


@images.command("contents")
@click.argument("name", metavar="NAME")
@click.option("--run", is_flag=True, help="Ask Python in the local image instead of reading the pins.")
def show_contents(name: str, run: bool) -> None:
    """Show which framework, CUDA, cuDNN and NCCL an image of ours holds. Needs no GPU.

    \b
    trainyard images contents trainer-torch-cuda --run
    """
    known = load_versions().images
    if name not in known:
        raise UsageError(f"unknown image: {name}", hint=f"use one of {', '.join(known)}")
    found = contents.of_pins(ROOT, name)
    if run:
        engine = engines.find()
        found = contents.of_image(engine, known[name], source.choose("auto").base(engine))
    if not found:
        raise UsageError(f"{name} pins no framework", hint="ask the image itself with --run")
    click.echo(json.dumps(found, indent=1))
