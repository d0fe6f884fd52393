"""Every check of an end-to-end run: what it reports, what it needs, and what it must have to itself.

A new check is one entry here. Entries run side by side as far as their locks and needs let them, in this order where
they conflict. How to add one: docs/contributing/add-a-check.md.
"""

from __future__ import annotations

import os

from trainyard_dev.e2e import catalog_members, options
from trainyard_dev.e2e.checks import (
    airgap,
    alerts,
    attacks,
    attacks_data,
    backup,
    buckets,
    gang,
    kernel_nfs,
    kfp_cost,
    kfp_samples,
    logs,
    metrics,
    monitoring,
    network,
    nodes,
    pipelines,
    policies,
    readme,
    rights,
    rightsize,
    services,
    storage,
    teams,
    training,
    uninstall,
    upgrade,
    volumes,
)
from trainyard_dev.e2e.context import Context
from trainyard_dev.e2e.entry import (
    ALONE,
    APART,
    DATA,
    GPU_USE,
    GPUS,
    HOROVOD,
    KFP_IMAGES,
    KINDS_CODE,
    MONITORING,
    PEOPLE,
    PIPELINE_CODE,
    PIPELINE_IMAGES,
    RELEASE_CODE,
    SERVING,
    SETTLED,
    STORAGE_CODE,
    TENSORFLOW,
    TORCH,
    UPGRADE_USE,
    VOLUME_USE,
    Entry,
    each,
)

# Reported before the entries: the cluster and the installation on it.
START = ("cluster.up", "install.helm", "nodes.late-gpu-node", "nodes.gpu-node", "install.helm-test")
_POLICIES = ("installed", "pytorchjob-refused", "mpijob-refused", "vcjob-refused", "operator-pod-refused",
             "volcano-pod-refused")  # fmt: skip
_ATTACKS = (
    "queue-job", "queue-pod", "queue-group", "priority", "gpus-job", "toleration", "toleration-all", "node-name",
    "visible-devices", "host-path", "nfs-volume", "privileged", "root-secret", "token", "image", "volume-create",
    "role-binding", "secret", "platform-secret", "pods", "job-elsewhere", "service-account", "own-token", "namespace",
    "quota", "network-policy", "queue-change", "policy", "node",
)  # fmt: skip
_BUCKET_ATTACKS = ("list", "list-all", "read", "write", "delete", "copy", "raw", "shared", "policy")
_NETWORK_ATTACKS = ("attack.network-pod", "attack.network-nfs", "attack.network-api")
_AIRGAP = ("airgap.denied", "airgap.install", "airgap.train")


def _ids(group: str, names: tuple[str, ...], between: str = ".") -> tuple[str, ...]:
    return tuple(f"{group}{between}{name}" for name in names)


def _training(kind: training.Kind, *images: str, needs: tuple[str, ...] = (DATA,), main: bool = True) -> Entry:
    return Entry(
        (kind.id,),
        lambda context: training.train(context, kind, context.dataset),
        main=(kind.id,) if main else (),
        needs=needs,
        shares=GPU_USE,
        images=images,
        inputs=KINDS_CODE,
    )


def _without_egress(context: Context) -> None:
    """The nodes are cut off: moved to a mirror, trained, uninstalled, installed from the mirror, purged."""
    cut = any(context.wants(check_id) for check_id in _AIRGAP)
    if cut:
        airgap.deny_egress(context)
    try:
        if cut:
            airgap.installed(context, context.dataset)
        if any(context.wants(check_id) for check_id in uninstall.TITLES):
            uninstall.uninstalled(context)
    finally:
        if cut:
            airgap.allow_egress(context)


def _csi(context: Context) -> None:
    installed = context.kubectl.find("csidriver", "nfs.csi.k8s.io")
    own = "installed, but this run uses our own provisioner"
    reason = own if installed else "its chart can't be pulled here; our own provisioner was used"
    context.recorder.skip("storage.csi", "csi-driver-nfs from its upstream chart", reason)


PYTORCH, TFJOB, MPI, VCJOB, CPU = training.KINDS
MNIST = ("pipelines.mnist", "pipelines.cached")
KFP_SAMPLES = (*KFP_IMAGES, TENSORFLOW, TORCH)
# Campaigns, by the variable that asks for them: make kfp-cost, make kfp-conformance.
_CAMPAIGNS = {
    "KFP_COST":
    Entry((kfp_cost.ID,), kfp_cost.cost, needs=(DATA,), locks=frozenset({ALONE}), long=True, images=KFP_SAMPLES),
    kfp_samples.FOLDER:
    Entry((kfp_samples.ID,), kfp_samples.samples, locks=frozenset({ALONE}), long=True, images=KFP_SAMPLES),
}  # fmt: skip

ENTRIES = (
    Entry(("teams.made",), teams.made, main=("teams.made",), shares=VOLUME_USE, inputs=RELEASE_CODE),
    Entry((DATA,), lambda context: storage.bucket(context, context.dataset), main=(DATA,), inputs=STORAGE_CODE),
    *catalog_members.OPTIONS,
    Entry(MNIST, pipelines.mnist, main=MNIST[:1], needs=(DATA,), shares=GPU_USE, images=PIPELINE_IMAGES,
          inputs=PIPELINE_CODE, parts=each(MNIST)),
    Entry(("storage.dataset-cache",), storage.fill_cache, main=("storage.dataset-cache",), needs=(DATA,),
          inputs=STORAGE_CODE),
    _training(TFJOB, TENSORFLOW, needs=(DATA, "storage.dataset-cache")),
    _training(PYTORCH, TORCH),
    _training(MPI, TORCH, "kubectl-delivery"),
    Entry((metrics.ID,), metrics.top, locks=frozenset({MONITORING}), shares=UPGRADE_USE, images=("metrics-server",),
          inputs=("charts/metrics-server",)),
    Entry(monitoring.IDS, monitoring.targets, locks=frozenset({MONITORING, SERVING, PEOPLE}), shares=UPGRADE_USE,
          images=(*options.IMAGES, "metrics-server", "dex"),
          inputs=("charts/monitoring", "charts/logs", "components", "scripts/trainyard_agent")),
    _training(VCJOB, TORCH),
    _training(CPU, TORCH),
    Entry(("gang.refused",), lambda context: gang.refused(context, context.dataset), main=("gang.refused",),
          shares=GPU_USE, inputs=("charts/trainyard/templates",)),
    Entry(("storage.rwx",), storage.shared, main=("storage.rwx",), shares=VOLUME_USE, inputs=STORAGE_CODE),
    Entry(_ids("attack", _ATTACKS), attacks.refused, main=("attack.queue-job", "attack.host-path", "attack.secret"),
          inputs=("policies",), parts=each(_ids("attack", _ATTACKS))),
    Entry(_ids("attack.bucket", _BUCKET_ATTACKS, "-"), attacks_data.buckets, main=("attack.bucket-read",),
          inputs=STORAGE_CODE, parts=each(_ids("attack.bucket", _BUCKET_ATTACKS, "-"))),
    Entry(("attack.volume-claim",), attacks_data.volume, main=("attack.volume-claim",), inputs=STORAGE_CODE),
    Entry(_NETWORK_ATTACKS, attacks_data.network, main=_NETWORK_ATTACKS, images=(TORCH,),
          inputs=("charts/trainyard/templates",)),
    _training(training.HOROVOD, HOROVOD, "kubectl-delivery", main=False),
    _training(training.NO_CHIEF, TENSORFLOW, needs=(DATA, "storage.dataset-cache"), main=False),
    *(
        _training(kind, image, main=False)
        for kind, image in zip(training.FURTHER, ("trainer-jax", "trainer-paddle", "trainer-xgboost"), strict=True)
    ),
    Entry(("pipelines.sweep", "pipelines.compress"), pipelines.others, needs=(DATA,), shares=GPU_USE,
          images=PIPELINE_IMAGES, inputs=PIPELINE_CODE),
    Entry(("pipelines.finetune",), pipelines.finetune, needs=("pipelines.mnist",), shares=GPU_USE,
          images=PIPELINE_IMAGES, inputs=PIPELINE_CODE),
    Entry(("pipelines.two-teams",), pipelines.two_teams, shares=GPU_USE, images=PIPELINE_IMAGES, inputs=PIPELINE_CODE),
    Entry(("pipelines.as-written",), pipelines.as_written, shares=GPU_USE, images=KFP_IMAGES,
          inputs=PIPELINE_CODE),
    Entry(("pipelines.failing",), pipelines.failing, needs=(DATA,), shares=GPU_USE, images=PIPELINE_IMAGES,
          inputs=PIPELINE_CODE),
    *catalog_members.ENTRIES,
    Entry(("storage.oversize",), storage.oversize, shares=VOLUME_USE, inputs=STORAGE_CODE),
    Entry(("storage.workspace",), volumes.workspace, shares=GPU_USE | VOLUME_USE, inputs=STORAGE_CODE),
    Entry(("storage.workspace-returns",), volumes.returning, shares=VOLUME_USE, inputs=STORAGE_CODE),
    Entry(("storage.shared-ro",), volumes.shared, shares=VOLUME_USE, inputs=STORAGE_CODE),
    Entry(("storage.team-buckets",), buckets.team_buckets, inputs=STORAGE_CODE),
    Entry(("storage.versioning",), buckets.versioning, inputs=STORAGE_CODE),
    Entry(("storage.ttl",), buckets.ttl, inputs=STORAGE_CODE),
    Entry(("storage.backup", "storage.restore"), backup.there_and_back, locks=VOLUME_USE, inputs=STORAGE_CODE),
    Entry(("storage.kernel-nfs",), kernel_nfs.kernel_nfs, inputs=("charts/nfs", "images/nfs-server")),
    Entry(("storage.csi",), _csi),
    Entry(("network.policies",), network.policies, inputs=("charts/trainyard/templates",)),
    Entry(("network.first-moment",), network.first_moment, inputs=("charts/trainyard/templates",)),
    Entry(("network.nfs-closed",), network.storage_closed, inputs=("charts/nfs",)),
    Entry((gang.STRICT_ID,), gang.strict, locks=frozenset({GPUS}), shares=UPGRADE_USE,
          inputs=("charts/trainyard/templates", "scripts/trainyard_agent")),
    Entry(("gpu.xid",), nodes.xid, locks=frozenset({GPUS}), inputs=("tools/device-plugin",)),
    # Behind these waits what shares upgrades.
    catalog_members.SEEN,
    Entry(("storage.static",), volumes.static, locks=VOLUME_USE | SETTLED, inputs=STORAGE_CODE),
    Entry(_ids("policies", _POLICIES), policies.enforced, locks=SETTLED, inputs=("policies",),
          parts=each(_ids("policies", _POLICIES))),
    Entry(("nodes.cpu-pods-off",), nodes.cpu_pods_off),
    Entry(("rights.secrets",), rights.secrets, inputs=("charts",)),
    # Its job leaves hardly any room on its node, where pods of other options would displace it.
    Entry((rightsize.ID,), rightsize.smaller, locks=frozenset({MONITORING, APART}), shares=UPGRADE_USE | GPU_USE,
          images=(TORCH, *options.SERVERS), long=True,
          inputs=("charts/monitoring", "scripts/trainyard/rightsize", "scripts/trainyard/commands/rightsize.py",
                  "scripts/trainyard_agent", "scripts/trainyard_dev/e2e/flows/sized")),
    Entry(("teams.add", "teams.change", "teams.remove"), teams.changed, needs=("teams.made",), locks=SETTLED | {APART},
          shares=VOLUME_USE, inputs=RELEASE_CODE),
    Entry(logs.IDS, logs.kept, locks=frozenset({ALONE, APART}), images=("otel-collector",), long=True,
          inputs=("charts/logs", "tools/otel-collector", "scripts/trainyard/training/kept", "scripts/trainyard_agent")),
    Entry((services.ID,), services.beside, locks=frozenset({ALONE}), images=(TORCH,), long=True,
          inputs=("charts/trainyard/profiles/services.yaml", "charts/trainyard/templates", "policies",
                  "scripts/trainyard_dev/e2e/flows/services")),
    Entry(("pipelines.outages",), pipelines.outages, needs=(DATA,), locks=frozenset({ALONE}),
          images=PIPELINE_IMAGES, inputs=PIPELINE_CODE),
    # Stops a kubelet, breaks a GPU, scales a controller away.
    Entry((alerts.ALERTS, alerts.PANELS), alerts.seen, needs=(DATA,), locks=frozenset({ALONE}),
          images=(*options.IMAGES, *PIPELINE_IMAGES), long=True,
          inputs=("charts/monitoring", "scripts/trainyard_dev/monitoring", "scripts/trainyard_agent")),
    Entry(("rights.no-forbidden",), rights.logs, locks=frozenset({ALONE}), inputs=("charts",)),
    Entry((*_AIRGAP, *uninstall.TITLES), _without_egress, needs=(DATA,), locks=frozenset({ALONE, APART}),
          images=(TORCH, *options.IMAGES, *options.OFFERED, *KFP_IMAGES, "dex", "notebook-hub", "notebook"),
          inputs=(*RELEASE_CODE, "scripts/trainyard_dev/images", "charts/login", "charts/notebooks",
                  "charts/serving"), parts=(_AIRGAP, tuple(uninstall.TITLES))),
    Entry(tuple(upgrade.TITLES), upgrade.from_previous,
          needs=tuple(uninstall.TITLES)[-1:],  # the cluster has no release then
          locks=frozenset({ALONE, APART}), images=(TORCH, *options.IMAGES), inputs=(*RELEASE_CODE, "versions.yaml")),
    Entry(  # takes any release away first
        tuple(readme.TITLES),
        readme.walked,
        locks=frozenset({ALONE, APART}),
        images=PIPELINE_IMAGES,
        inputs=("README.md", "examples", "scripts/trainyard_dev/e2e/walks.py", "pyproject.toml", "pipelines/mnist.py",
                "pipelines/components", "scripts/trainyard/data", "scripts/trainyard/commands/data.py",
                "scripts/trainyard/commands/submit.py", "scripts/trainyard/commands/train.py",
                "scripts/trainyard/pipelines/submit"),
    ),
    *(entry for asked, entry in _CAMPAIGNS.items() if os.environ.get(asked)),
)  # fmt: skip


def all_ids() -> list[str]:
    """Every id that a full run reports, in the order of the catalog."""
    return [*START, *(check_id for entry in ENTRIES for check_id in entry.ids)]
