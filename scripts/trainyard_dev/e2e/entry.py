"""One piece of an end-to-end run, and the names that pieces share: locks, images, what they concern."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from trainyard_dev.e2e.context import Context

# What entries hold while they run. A name in `locks` is held alone, one in `shares` together with others that share it.
GPUS = "gpus"  # every GPU of the cluster
UPGRADES = "upgrades"  # shared by who upgrades the release by a layer of values: `releases.layer`
PEOPLE, SERVING, MONITORING = "people", "serving", "monitoring"  # values of a layer: teams and log-in, options
VOLUMES = "volumes"  # the teams' claims and what lies in them
ALONE = "*"  # nothing else may run
APART = "a cluster of its own"  # in a full run: there, nothing else may run

GPU_USE, VOLUME_USE = frozenset({GPUS}), frozenset({VOLUMES})
UPGRADE_USE = frozenset({UPGRADES})
# What takes objects of the release away for a while, or reads what an upgrade said: nobody may upgrade beside it.
SETTLED = frozenset({UPGRADES})

TORCH, TENSORFLOW, HOROVOD = "trainer-torch", "trainer-tensorflow", "trainer-horovod"
PIPELINE_IMAGES = ("argoexec", "pipeline", TORCH)
KFP_IMAGES = ("argoexec", "pipeline", "python-311")  # of components as kfp writes them
DATA = "storage.bucket"
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


@dataclass(frozen=True)
class Entry:
    """One piece of a run.

    Args:
        ids: what it reports; what only tidies up reports nothing.
        parts: groups of its ids that can be chosen apart; empty: all come together.
        main: those of its ids that belong to the main job (`make e2e` without FULL=1).
        needs: ids that must have passed before; they are chosen with it.
        images: of versions.yaml, by name; the entry waits for them.
        inputs: what it checks beside the chart, as paths from the repository's root; `.ci/run` runs the entry when one
            of them changed.
        long: it takes minutes with nothing beside it; CHANGED=1 leaves it to FULL=1 and says so.
        login: its cluster's API server takes tokens of an issuer; chosen with it, a new cluster is made so.
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
    long: bool = False
    login: bool = False

    def conflicts(self, other: Entry) -> bool:
        """Whether the two may not run at the same time."""
        if (APART in self.locks) != (APART in other.locks):
            return False
        if ALONE in self.locks | other.locks:
            return True
        return bool(self.locks & (other.locks | other.shares) or other.locks & self.shares)


def each(ids: tuple[str, ...]) -> tuple[tuple[str, ...], ...]:
    """Every id can be chosen alone."""
    return tuple((check_id,) for check_id in ids)
