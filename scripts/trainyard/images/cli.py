"""Commands under `trainyard images`."""

from __future__ import annotations

import click

from trainyard import engine as engines
from trainyard.cluster import source
from trainyard.images import build as builder
from trainyard.images import registry
from trainyard.progress import Progress
from trainyard.versions import load


@click.group()
def images() -> None:
    """Container images of the platform and of the test cluster."""


@images.command("list")
def list_images() -> None:
    """List every image by reference, and whether it is ours or upstream's."""
    for image in load().images.values():
        if not image.local:
            click.echo(f"{image.ref:64}{'ours' if image.own else 'upstream'}")


@images.command()
@click.option("--images", "wanted", default="auto", show_default=True, help="auto, pull or build.")
def build(wanted: str) -> None:
    """Build every image that this machine would need and the cache lacks."""
    engine, chosen = engines.find(), source.choose(wanted)
    base = chosen.base(engine)
    needed = [i for i in load().images.values() if i.own or i.local or chosen.kind == "build"]
    needed = [i for i in needed if chosen.kind == "build" or i.name != "node"]
    missing = [i for i in needed if not (registry.is_pushed(i, base) or engine.has_image(builder.local_ref(i, base)))]
    progress = Progress(len(missing), f"Images ({chosen.kind}: {chosen.reason})")
    for image in missing:
        with progress.step(image.ref):
            builder.build(engine, image, base)
