"""The order of a run on a cluster: the installation, then every chosen check as the catalog says."""

from __future__ import annotations

from trainyard_dev.cluster.nodes import forget_stale
from trainyard_dev.e2e import install, schedule, selection
from trainyard_dev.e2e.checks import nodes
from trainyard_dev.e2e.context import Context
from trainyard_dev.images import registry


def checks(context: Context) -> None:
    """Everything that was chosen; what later checks stand on ends the run when it fails."""
    if _reinstalled(context) if context.reused else _installed(context):
        schedule.run(selection.entries(context.chosen), context)


def _installed(context: Context) -> bool:
    """The installation, with a GPU node that joins after it. Whether the rest can be checked."""
    recorder, last = context.recorder, context.gpu_nodes[-1]
    late = context.gpus[last] > 0
    if late:
        nodes.leave(context, last)
    install.await_images(context)
    with recorder.span("install", "helm install --wait"):
        install.install(context)
    if recorder.failed("install.helm"):
        return False
    if late:
        nodes.late(context)
    else:
        title = "a GPU node that joins after the installation"
        recorder.skip("nodes.late-gpu-node", title, "one GPU serves one node only")
    nodes.prepared(context)
    install.self_test(context)
    return True


def _reinstalled(context: Context) -> bool:
    """A kept cluster with this tree's chart and images. Whether it can be checked."""
    install.await_images(context)
    if supply := context.supply:
        making = supply.missing()
        served = {i.ref: "" if i.name in making else registry.digest(i.ref) for i in supply.images if not i.local}
        for node in context.nodes:
            forget_stale(context.engine, node.name, served)
    with context.recorder.span("install", "helm upgrade --install --wait"):
        install.again(context)
    return not context.recorder.failed("install.again")
