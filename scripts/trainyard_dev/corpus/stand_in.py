"""Stand-ins for upstream's images: trainers with our program at upstream's paths."""

from typing import Any

from trainyard_dev.corpus import picked
from trainyard_dev.versions import Image

FOLDER = "scripts/trainyard_dev/corpus/stand-in"
TAG = "e2e"


def image(trainer: str) -> Image:
    """The stand-in based on a trainer such as `trainer-torch`; never part of a release."""
    name = f"stand-in-{trainer.removeprefix('trainer-')}"
    ref = f"site.invalid/trainyard/{name}:{TAG}"
    return Image(name, ref, FOLDER, FOLDER, own=True, stage="check", demand=True, parent=trainer)


def values() -> dict[str, Any]:
    """Values of the chart: the table of images that upstream's examples need."""
    table = {name: image(trainer).ref if trainer else "pipeline" for name, trainer in picked.IMAGES.items()}
    return {"policies": {"fill": {"images": table}}}
