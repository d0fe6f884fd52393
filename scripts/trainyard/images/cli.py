"""Commands under `trainyard images`."""

from __future__ import annotations

import click

from trainyard import engine as engines
from trainyard.cluster import source
from trainyard.errors import UsageError
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


@images.command()
@click.argument("registry_host", metavar="HOST")
@click.option("--images", "wanted", default="auto", show_default=True, help="auto, pull or build.")
@click.option("--all", "every", is_flag=True, help="Upstream's images as well; only with --images build.")
def push(registry_host: str, wanted: str, every: bool) -> None:
    """Push our own images to HOST, a registry that a cluster's nodes reach; the chart's global.imageRegistry names it.

    HOST may have a path, such as registry.example.org/mirror. Log in to it with docker or podman first.
    """
    host = registry_host.rstrip("/")
    if "://" in host or not host:
        raise UsageError(
            f"`{registry_host}` is no registry host", mend="write it without a scheme: registry.example.org"
        )
    engine, chosen = engines.find(), source.choose(wanted)
    if every and chosen.kind != "build":
        raise UsageError(
            "upstream's images are only built with --images build", mend="mirror the published ones instead"
        )
    base = chosen.base(engine)
    needed = [i for i in load().images.values() if not i.local and (i.own or every)]
    progress = Progress(len(needed), f"Images to {host}")
    for image in needed:
        with progress.step(f"{host}/{image.ref.partition('/')[2]}"):
            local = builder.build(engine, image, base)
            for ref in (image.ref, *image.also):
                target = f"{host}/{ref.partition('/')[2]}"
                engine("tag", local, target)
                engine(
                    "push",
                    target,
                    mend=f"check that you may push there: `{engine.name} login {host.partition('/')[0]}`",
                )
