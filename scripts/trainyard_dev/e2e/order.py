"""The checks on a running cluster, in order; what later ones stand on ends the run when it fails."""

from __future__ import annotations

from trainyard.pipelines.local.dataset import Dataset
from trainyard_dev.e2e import install
from trainyard_dev.e2e.checks import (
    airgap,
    attacks,
    attacks_data,
    backup,
    buckets,
    folder,
    gang,
    kernel_nfs,
    network,
    nodes,
    pipelines,
    policies,
    rights,
    storage,
    teams,
    training,
    turns,
    uninstall,
    upgrade,
    volumes,
)
from trainyard_dev.e2e.context import Context


def checks(context: Context, data: Dataset) -> None:
    """Installation, training, storage, attacks, changes of teams, no egress, uninstallation, upgrade."""
    if not _installed(context):
        return
    teams.made(context)
    storage.bucket(context, data)
    if context.recorder.failed("storage.bucket"):
        return
    storage.fill_cache(context)
    for kind in training.KINDS:
        training.train(context, kind, data)
    gang.refused(context, data)
    turns.strict(context)
    _pipelines(context)
    _storage(context)
    network.policies(context)
    network.storage_closed(context)
    nodes.cpu_pods_off(context)
    nodes.xid(context)
    policies.enforced(context)
    attacks.refused(context)
    attacks_data.buckets(context)
    attacks_data.volume(context)
    attacks_data.network(context)
    teams.changed(context)
    rights.secrets(context)
    rights.logs(context)
    _without_egress(context, data)
    if context.recorder.passed("uninstall.purge"):  # the cluster has no release then
        upgrade.from_previous(context)


def _installed(context: Context) -> bool:
    """The installation, with a GPU node that joins after it. Whether the rest can be checked."""
    recorder, last = context.recorder, context.gpu_nodes[-1]
    late = context.gpus[last] > 0
    if late:
        nodes.leave(context, last)
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


def _pipelines(context: Context) -> None:
    """The examples, the cache, what goes wrong, what a step costs; a folder's code without a pipeline."""
    pipelines.examples(context)
    pipelines.failing(context)
    pipelines.overhead(context)
    pipelines.outages(context)
    folder.train(context)


def _storage(context: Context) -> None:
    """Buckets and volumes."""
    storage.shared(context)
    volumes.workspace(context)
    volumes.returning(context)
    volumes.shared(context)
    volumes.static(context)
    buckets.team_buckets(context)
    buckets.versioning(context)
    buckets.ttl(context)
    backup.there_and_back(context)
    kernel_nfs.kernel_nfs(context)
    context.recorder.skip("storage.csi", "csi-driver-nfs from its upstream chart", _csi_reason(context))


def _without_egress(context: Context, data: Dataset) -> None:
    """The nodes are cut off: moved to a mirror, trained, uninstalled, installed from the mirror, purged."""
    airgap.deny_egress(context)
    try:
        airgap.installed(context, data)
        uninstall.uninstalled(context)
    finally:
        airgap.allow_egress(context)


def _csi_reason(context: Context) -> str:
    driver = context.kubectl.find("csidriver", "nfs.csi.k8s.io")
    return (
        "installed, but this run uses our own provisioner"
        if driver
        else "its chart can't be pulled here; our own provisioner was used"
    )
