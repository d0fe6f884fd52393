"""Stand-ins of upstream's images: a trainer with our program at upstream's paths, made and pushed when a check asks."""

from __future__ import annotations

import threading
from typing import Any

from trainyard.errors import TrainyardError
from trainyard_dev.corpus import picked
from trainyard_dev.e2e.context import Context
from trainyard_dev.images import registry
from trainyard_dev.versions import Image

FOLDER = "scripts/trainyard_dev/e2e/stand-in"
TAG = "e2e"
_ONE = threading.Lock()  # several checks ask for the same one


def image(trainer: str) -> Image:
    """The stand-in on `trainer-torch`, say; no image of a release."""
    name = f"stand-in-{trainer.removeprefix('trainer-')}"
    ref = f"docker.io/trainyard/{name}:{TAG}"
    return Image(name, ref, FOLDER, FOLDER, own=True, stage="check", demand=True, parent=trainer)


def values() -> dict[str, Any]:
    """Values of the chart: the table of images that upstream's examples need."""
    table = {name: image(trainer).ref if trainer else "pipeline" for name, trainer in picked.IMAGES.items()}
    return {"policies": {"fill": {"images": table}}}


def make(context: Context, trainer: str) -> None:
    """Returns when the cluster's registry has it. TrainyardError where nothing makes images in this run."""
    if context.supply is None:
        raise TrainyardError("this run makes no images", where=image(trainer).ref, hint="run it by `make e2e`")
    base = context.supply.base
    context.await_images([trainer])
    with _ONE:
        if not registry.is_pushed(image(trainer), base):
            registry.push(context.engine, image(trainer), base, registry.address(context.engine))
