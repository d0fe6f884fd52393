"""Makes and pushes a stand-in for upstream's images on request."""

import threading

from trainyard.errors import TrainyardError
from trainyard_dev.corpus.stand_in import image
from trainyard_dev.e2e.context import Context
from trainyard_dev.images import registry

_ONE = threading.Lock()  # several checks request the same one


def make(context: Context, trainer: str) -> None:
    """Returns when the cluster's registry has it. TrainyardError if this run can't make images."""
    if context.supply is None:
        raise TrainyardError("this run builds no images", where=image(trainer).ref, hint="run it with `make e2e`")
    base = context.supply.base
    context.await_images([trainer])
    with _ONE:
        if not registry.is_pushed(image(trainer), base):
            registry.push(context.engine, image(trainer), base, registry.address(context.engine))
