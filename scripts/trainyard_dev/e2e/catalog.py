"""Every check of an end-to-end run: what it reports, what it needs, and what it must have to itself.

A new check is one entry here. Entries run side by side as far as their locks and needs let them, in this order where
they conflict. How to add one: docs/contributing/add-a-check.md.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from trainyard.kinds.images import Trainer, trainers
from trainyard.kinds.registry import KINDS
from trainyard_dev.e2e.checks import (
    airgap,
    arrivals,
    attacks,
    attacks_data,
    backup,
    buckets,
    data,
    elsewhere,
    folder,
    frameworks,
    gang,
    kernel_nfs,
    metrics,
    network,
    nodes,
    parallel,
    pipelines,
    policies,
    readme,
    requirements,
    rights,
    seeing,
    storage,
    strict_fifo,
    teams,
    training,
    uninstall,
    upgrade,
    volumes,
)
from trainyard_dev.e2e.context import Context

# What entries hold while they run. A name in `locks` is held alone, one in `shares` together with others that share it.
GPUS = "gpus"  # every GPU of the cluster
RELEASE = "release"  # the Helm release: an entry that upgrades it holds it alone; who only runs jobs notices nothing
VOLUMES = "volumes"  # the teams' claims and what lies in them
ALONE = "*"  # nothing else may run

TORCH, TENSORFLOW, HOROVOD = "trainer-torch", "trainer-tensorflow", "trainer-horovod"
PIPELINE_IMAGES = ("argoexec", "pipeline", TORCH)
DATA = "storage.bucket"


@dataclass(frozen=True)
class Entry:
    """One piece of a run.

    Args:
        ids: what it reports.
        parts: groups of its ids that can be chosen apart; empty: all come together.
        main: those of its ids that belong to the main job (`make e2e` without FULL=1).
        needs: ids that must have passed before; they are chosen with it.
        images: of versions.yaml, by name; the entry waits for them.
        inputs: what it checks beside the chart, as paths from the repository's root; `.ci/run` runs the entry when one
            of them changed.
    """

    ids: tuple[str, ...]
    run: Callable[[Context], object]
    main: tuple[str, ...] = ()
    needs: tuple[str, ...] = ()
    locks: frozenset[str] = frozenset()
    shares: frozenset[str] = frozenset()
    images: tuple[str, ...] = ()
    inputs: tuple[str, ...] = ()
    parts: tuple[tuple[str, ...], ...] = ()

    def conflicts(self, other: Entry) -> bool:
        """Whether the two may not run at the same time."""
        if ALONE in self.locks | other.locks:
            return True
        return bool(self.locks & (other.locks | other.shares) or other.locks & self.shares)


# Reported before the entries: the cluster and the installation on it.
START = ("cluster.up", "install.helm", "nodes.late-gpu-node", "nodes.gpu-node", "install.helm-test")
KINDS_CODE = ("scripts/trainyard/kinds", "manifests/jobs", "images/trainer", "charts/training-operator")
STORAGE_CODE = ("charts/minio", "charts/nfs", "scripts/trainyard_agent", "images/nfs-server", "images/nfs-provisioner")
PIPELINE_CODE = (
    "scripts/trainyard/pipelines",
    "scripts/trainyard/observe",
    "pipelines",
    "charts/argo",
    "tools/step",
    "images/pipeline",
)
EXAMPLES_CODE = ("examples", "scripts/trainyard/training", "scripts/trainyard/kinds", "images/trainer-torch")
RELEASE_CODE = (
    "scripts/trainyard/chart",
    "scripts/trainyard_agent",
    "charts/patches",
    "charts/trainyard/templates",
    "components",
)

_POLICIES = ("installed", "pytorchjob-refused", "mpijob-refused", "vcjob-refused", "operator-pod-refused",
             "volcano-pod-refused")  # fmt: skip
_ATTACKS = (
    "queue-job", "queue-pod", "queue-group", "priority", "gpus-job", "toleration", "toleration-all", "node-name",
    "visible-devices", "host-path", "nfs-volume", "privileged", "root-secret", "token", "image", "volume-create",
    "role-binding", "secret", "platform-secret", "pods", "job-elsewhere", "service-account", "own-token", "namespace",
    "quota", "network-policy", "queue-change", "policy", "node",
)  # fmt: skip
_BUCKET_ATTACKS = ("list", "list-all", "read", "write", "delete", "copy", "raw", "shared", "policy")
_AIRGAP = ("airgap.denied", "airgap.install", "airgap.train")


def _each(ids: tuple[str, ...]) -> tuple[tuple[str, ...], ...]:
    """Every id can be chosen alone."""
    return tuple((check_id,) for check_id in ids)


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


def _script(script: frameworks.Script) -> Entry:
    kind = next(kind for kind in KINDS if kind.kind == script.kind)
    image = script.image or next(one.name for one in trainers() if one.key == kind.image)
    return Entry(
        (script.id,),
        lambda context: frameworks.train(context, script),
        needs=(DATA,),
        shares=GPU_USE,
        images=(image, "kubectl-delivery") if script.kind == "MPIJob" else (image,),
        inputs=(*KINDS_CODE, f"examples/{script.folder}", "scripts/trainyard/training"),
    )


def _imports(image: Trainer) -> Entry:
    return Entry(
        (frameworks.imports_id(image),),
        lambda context: frameworks.imports(context, image),
        images=(image.name,),
        inputs=(f"images/{image.name}", "images/requirements.yaml"),
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
ELSEWHERE = tuple(f"elsewhere.{name}" for name in ("workflow", "component", "object", "object-refused"))
GPU_USE, VOLUME_USE = frozenset({GPUS}), frozenset({VOLUMES})
# What takes objects of the release away for a while: no upgrade may look for them then.
SETTLED = frozenset({RELEASE})

ENTRIES = (
    Entry(("teams.made",), teams.made, main=("teams.made",), shares=frozenset({RELEASE, VOLUMES}), inputs=RELEASE_CODE),
    Entry((DATA,), lambda context: storage.bucket(context, context.dataset), main=(DATA,), inputs=STORAGE_CODE),
    Entry(
        ("storage.dataset-cache",),
        storage.fill_cache,
        main=("storage.dataset-cache",),
        needs=(DATA,),
        inputs=STORAGE_CODE,
    ),
    _training(TFJOB, TENSORFLOW, needs=(DATA, "storage.dataset-cache")),
    _training(PYTORCH, TORCH),
    Entry(
        MNIST,
        pipelines.mnist,
        main=MNIST[:1],
        needs=(DATA,),
        shares=GPU_USE,
        images=PIPELINE_IMAGES,
        inputs=PIPELINE_CODE,
        parts=_each(MNIST),
    ),
    _training(MPI, TORCH, "kubectl-delivery"),
    # Both mostly wait for Helm: beside trainings they cost little.
    Entry(("teams.add", "teams.change", "teams.remove"), teams.changed, locks=frozenset({RELEASE}), shares=VOLUME_USE,
          inputs=RELEASE_CODE),
    Entry((metrics.ID,), metrics.top, locks=frozenset({RELEASE}), images=("metrics-server",),
          inputs=("charts/metrics-server",)),
    _training(VCJOB, TORCH),
    _training(CPU, TORCH),
    Entry(
        ("gang.refused",),
        lambda context: gang.refused(context, context.dataset),
        main=("gang.refused",),
        shares=GPU_USE,
        inputs=("charts/trainyard/templates",),
    ),
    Entry(("storage.rwx",), storage.shared, main=("storage.rwx",), shares=VOLUME_USE, inputs=STORAGE_CODE),
    Entry(
        _ids("attack", _ATTACKS),
        attacks.refused,
        main=("attack.queue-job", "attack.host-path", "attack.secret"),
        inputs=("policies",),
        parts=_each(_ids("attack", _ATTACKS)),
    ),
    Entry(
        _ids("attack.bucket", _BUCKET_ATTACKS, "-"),
        attacks_data.buckets,
        main=("attack.bucket-read",),
        inputs=STORAGE_CODE,
        parts=_each(_ids("attack.bucket", _BUCKET_ATTACKS, "-")),
    ),
    Entry(("attack.volume-claim",), attacks_data.volume, main=("attack.volume-claim",), inputs=STORAGE_CODE),
    Entry(
        _ids("attack", ("network-pod", "network-nfs", "network-api")),
        attacks_data.network,
        main=_ids("attack", ("network-pod", "network-nfs", "network-api")),
        images=(TORCH,),
        inputs=("charts/trainyard/templates",),
    ),
    _training(training.HOROVOD, HOROVOD, "kubectl-delivery", main=False),
    _training(training.NO_CHIEF, TENSORFLOW, needs=(DATA, "storage.dataset-cache"), main=False),
    *(
        _training(kind, image, main=False)
        for kind, image in zip(training.FURTHER, ("trainer-jax", "trainer-paddle", "trainer-xgboost"), strict=True)
    ),
    Entry(
        ("pipelines.sweep", "pipelines.compress"),
        pipelines.others,
        needs=(DATA,),
        shares=GPU_USE,
        images=PIPELINE_IMAGES,
        inputs=PIPELINE_CODE,
    ),
    Entry(("pipelines.finetune",), pipelines.finetune, needs=("pipelines.mnist",), shares=GPU_USE,
          images=PIPELINE_IMAGES, inputs=PIPELINE_CODE),
    Entry(
        ELSEWHERE,
        elsewhere.check,
        shares=GPU_USE,
        images=("argoexec", "pipeline"),
        inputs=(*PIPELINE_CODE, "scripts/trainyard_dev/e2e/flows"),
        parts=_each(ELSEWHERE),
    ),
    Entry(("pipelines.two-teams",), pipelines.two_teams, shares=GPU_USE, images=PIPELINE_IMAGES, inputs=PIPELINE_CODE),
    Entry(("pipelines.failing",), pipelines.failing, needs=(DATA,), shares=GPU_USE, images=PIPELINE_IMAGES,
          inputs=PIPELINE_CODE),
    *(_script(one) for one in frameworks.SCRIPTS),
    Entry(("arrivals.imports",), frameworks.refused, inputs=("scripts/trainyard/kinds", "scripts/trainyard/training")),
    *(_imports(one) for one in trainers()),
    Entry(
        ("train.folder", "train.again", "train.failing", "train.traces"),
        folder.train,
        shares=GPU_USE,
        images=(TORCH,),
        inputs=("scripts/trainyard/training", "scripts/trainyard/observe", "scripts/trainyard/kinds"),
    ),
    Entry(
        tuple(arrivals.TITLES),
        arrivals.arrive,
        shares=GPU_USE | VOLUME_USE,
        images=(TORCH, TENSORFLOW, "pipeline", "argoexec"),
        inputs=("policies", "scripts/trainyard/policy/fill", "scripts/trainyard_dev/e2e/arrivals", "manifests/cluster"),
        parts=_each(tuple(arrivals.TITLES)),
    ),
    Entry(
        ("train.requirements", "train.requirements-again", "train.requirements-line"),
        requirements.installed,
        shares=GPU_USE,
        images=(TORCH,),
        inputs=("scripts/trainyard/training", "scripts/trainyard/kinds", "scripts/trainyard_agent", "images/platform"),
    ),
    Entry(("train.fsdp", "train.fsdp-resumed"), parallel.fsdp, shares=GPU_USE, images=(TORCH,), inputs=EXAMPLES_CODE),
    Entry((parallel.ELASTIC,), parallel.elastic, locks=frozenset({GPUS, RELEASE}), images=(TORCH,),
          inputs=EXAMPLES_CODE),
    Entry(
        ("data.put", "data.workspace", "data.refused"),
        data.put,
        needs=(DATA,),
        shares=VOLUME_USE,
        inputs=("scripts/trainyard/data", "scripts/trainyard/training/transfer", "scripts/trainyard_agent"),
    ),
    Entry(("seeing.gpus",), seeing.gpus, inputs=("scripts/trainyard_agent", "charts/trainyard/templates")),
    Entry(("seeing.compare", "seeing.tensorboard"), seeing.looked_at, shares=SETTLED, images=(TORCH,),
          inputs=("scripts/trainyard/training", "scripts/trainyard/kube", "scripts/trainyard_agent")),
    Entry(("storage.oversize",), storage.oversize, shares=VOLUME_USE, inputs=STORAGE_CODE),
    Entry(("storage.workspace",), volumes.workspace, shares=GPU_USE | VOLUME_USE, inputs=STORAGE_CODE),
    Entry(("storage.workspace-returns",), volumes.returning, shares=VOLUME_USE, inputs=STORAGE_CODE),
    Entry(("storage.shared-ro",), volumes.shared, shares=VOLUME_USE, inputs=STORAGE_CODE),
    Entry(("storage.static",), volumes.static, locks=VOLUME_USE, shares=SETTLED, inputs=STORAGE_CODE),
    Entry(("storage.team-buckets",), buckets.team_buckets, inputs=STORAGE_CODE),
    Entry(("storage.versioning",), buckets.versioning, inputs=STORAGE_CODE),
    Entry(("storage.ttl",), buckets.ttl, inputs=STORAGE_CODE),
    Entry(("storage.backup", "storage.restore"), backup.there_and_back, locks=VOLUME_USE, inputs=STORAGE_CODE),
    Entry(("storage.kernel-nfs",), kernel_nfs.kernel_nfs, inputs=("charts/nfs", "images/nfs-server")),
    Entry(("storage.csi",), _csi),
    Entry(("network.policies",), network.policies, inputs=("charts/trainyard/templates",)),
    Entry(("network.first-moment",), network.first_moment, inputs=("charts/trainyard/templates",)),
    Entry(("network.nfs-closed",), network.storage_closed, inputs=("charts/nfs",)),
    Entry(_ids("policies", _POLICIES), policies.enforced, inputs=("policies",),
          parts=_each(_ids("policies", _POLICIES))),
    Entry(("queues.strict",), strict_fifo.strict, locks=frozenset({GPUS, RELEASE}),
          inputs=("charts/trainyard/templates", "scripts/trainyard_agent")),
    Entry(("gpu.xid",), nodes.xid, locks=frozenset({GPUS}), inputs=("tools/device-plugin",)),
    Entry(("pipelines.overhead",), pipelines.overhead, locks=frozenset({ALONE}), images=PIPELINE_IMAGES,
          inputs=PIPELINE_CODE),
    Entry(("pipelines.outages",), pipelines.outages, needs=(DATA,), locks=frozenset({ALONE}), images=PIPELINE_IMAGES,
          inputs=PIPELINE_CODE),
    Entry(("nodes.cpu-pods-off",), nodes.cpu_pods_off),
    Entry(("rights.secrets",), rights.secrets, inputs=("charts",)),
    Entry(("rights.no-forbidden",), rights.logs, locks=frozenset({ALONE}), inputs=("charts",)),
    Entry(
        (*_AIRGAP, *uninstall.TITLES),
        _without_egress,
        needs=(DATA,),
        locks=frozenset({ALONE}),
        images=(TORCH,),
        inputs=(*RELEASE_CODE, "scripts/trainyard_dev/images"),
        parts=(_AIRGAP, tuple(uninstall.TITLES)),
    ),
    Entry(
        tuple(upgrade.TITLES),
        upgrade.from_previous,
        needs=tuple(uninstall.TITLES)[-1:],  # the cluster has no release then
        locks=frozenset({ALONE}),
        images=(TORCH,),
        inputs=(*RELEASE_CODE, "versions.yaml"),
    ),
    Entry(  # takes the release away first, whoever made it
        tuple(readme.TITLES),
        readme.walked,
        locks=frozenset({ALONE}),
        images=PIPELINE_IMAGES,
        inputs=("README.md", "examples", "scripts/trainyard_dev/e2e/walks.py"),
    ),
)  # fmt: skip


def all_ids() -> list[str]:
    """Every id that a full run reports, in the order of the catalog."""
    return [*START, *(check_id for entry in ENTRIES for check_id in entry.ids)]
