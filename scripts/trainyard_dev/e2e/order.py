"""The order of a run on a cluster: the installation, then every chosen check in the catalog's order."""

from dataclasses import replace

from trainyard_dev.cluster import lifecycle
from trainyard_dev.cluster.nodes import forget_stale
from trainyard_dev.e2e import schedule, second, selection
from trainyard_dev.e2e.catalog import FIRST
from trainyard_dev.e2e.checks import install, nodes
from trainyard_dev.e2e.context import Context
from trainyard_dev.e2e.entry import APART, Entry
from trainyard_dev.images import registry


def checks(context: Context) -> None:
    """Runs all chosen checks; a failure of one that later checks depend on ends the run."""
    if _reinstalled(context) if context.reused else _installed(context):
        first = () if context.reused else FIRST
        here = frozenset() if context.second else {APART}
        entries = [replace(entry, locks=entry.locks - here) for entry in selection.entries(context.chosen)]
        # Entries there wait for each other: they start with the run.
        entries.sort(key=lambda entry: APART not in entry.locks)
        last = [Entry((), _removed, locks=frozenset({APART}))] if context.second else []
        schedule.run([*first, *entries, *last], context)


def _removed(context: Context) -> None:
    """Removes the second cluster once its checks have ended; after a failure it stays for diagnosis."""
    if not any(check.status == "failed" and selection.apart([check.id]) for check in context.recorder.checks):
        lifecycle.down(context.engine, second.name(context.cluster))


def _installed(context: Context) -> bool:
    """Installs on a cluster without its last GPU node. Returns whether the rest can be checked."""
    last = context.gpu_nodes[-1]
    if context.gpus[last]:
        nodes.leave(context, last)
    install.await_images(context)
    with context.recorder.span("install", "helm install --wait"):
        install.install(context)
    return not context.recorder.failed("install.helm")


def _reinstalled(context: Context) -> bool:
    """Puts this tree's chart and images on a kept cluster. Returns whether it can be checked."""
    install.await_images(context)
    if supply := context.supply:
        making = supply.missing()
        served = {i.ref: "" if i.name in making else registry.digest(i.ref) for i in supply.images if not i.local}
        for node in context.nodes:
            forget_stale(context.engine, node.name, served)
    with context.recorder.span("install", "helm upgrade --install --wait"):
        install.again(context)
    return not context.recorder.failed("install.again")
