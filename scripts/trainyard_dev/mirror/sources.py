"""Sources of images: published ones in their own registries, the rest in the test cluster's registry."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from trainyard.errors import TrainyardError
from trainyard_dev.engine import Engine
from trainyard_dev.images import registry, source
from trainyard_dev.images.crane import Item, under
from trainyard_dev.images.registry import NETWORK
from trainyard_dev.progress import Progress
from trainyard_dev.versions import load


def items(engine: Engine, refs: Sequence[str], wanted: str) -> list[Item]:
    """Makes every reference readable: unpublished images are built, once per content, and kept in our registry.

    Args:
        wanted: auto, pull or build: whether upstream's images are built here, too.

    Raises:
        TrainyardError: a reference is neither published nor ours.
    """
    chosen = source.choose(wanted)
    known = {ref: image for image in load().images.values() for ref in (image.ref, *image.also)}
    served = {image.name for image in chosen.served(list(load().images.values()))}
    built = {ref: known[ref] for ref in refs if ref in known and known[ref].name in served}
    if chosen.kind == "build" and (strange := [ref for ref in refs if ref not in built]):
        raise TrainyardError(
            f"{', '.join(strange)} cannot be built here", hint="use --images pull, if the registry is reachable"
        )
    address = ""
    if built:
        base = chosen.base(engine)
        address = registry.start(engine, NETWORK, lambda: chosen.registry_image(engine, base))
        missing = [
            image for image in {i.name: i for i in built.values()}.values() if not registry.is_pushed(image, base)
        ]
        title = f"Images to build before their sizes are known ({chosen.kind}: {chosen.reason})"
        progress = Progress(len(missing), title if missing else "")
        for image in missing:
            with progress.step(image.ref):
                registry.push(engine, image, base, address)
    return [Item(ref, under(address, ref) if ref in built else ref) for ref in refs]


@contextmanager
def readable(engine: Engine, refs: Sequence[str], wanted: str) -> Iterator[list[Item]]:
    """Yields the items; afterwards ends a registry that no cluster needs, whose content stays cached."""
    running = bool(engine.containers(registry.LABEL))
    try:
        yield items(engine, refs, wanted)
    finally:
        if not running:
            registry.stop(engine)
