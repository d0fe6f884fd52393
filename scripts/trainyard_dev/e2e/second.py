"""A second cluster in addition to the first, for checks that install, upgrade and remove the whole release."""

from dataclasses import replace
from threading import RLock

from trainyard_dev.cluster import lifecycle
from trainyard_dev.e2e import releases, runs
from trainyard_dev.e2e.context import Context


def name(cluster: str) -> str:
    """The name of the second cluster for that one."""
    return f"{cluster}-second"


def make(first: Context, options: lifecycle.Options) -> Context:
    """The run on a new cluster like the first, with the release and the data set installed. Raises TrainyardError."""
    cluster = name(first.cluster)
    if first.supply:
        first.await_images(image.name for image in first.supply.images)
    with first.recorder.span("cluster", "a second cluster"):
        lifecycle.down(first.engine, cluster)
        options = replace(options, name=cluster)
        kubectl = lifecycle.up(first.engine, options, first.supply)
        made = replace(first, cluster=cluster, kubectl=kubectl, nodes=options.nodes,
                       gpus=lifecycle.gpus_due(options), contract={}, layers=[], claims=set(), helm=RLock(),
                       in_use=lambda lock: False, second=None)  # fmt: skip
        with releases.values(made) as files:
            releases.put(made, "install", files)
        runs.engineer(made, "data", "example", timeout=180)
    return made
