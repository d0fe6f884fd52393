"""One entry of an end-to-end run: `@check` decorates the function that runs it; and the names that entries share."""

from __future__ import annotations

from collections.abc import Callable, Set
from dataclasses import dataclass
from functools import wraps
from typing import Any, TypeVar

from trainyard_dev.e2e.context import Context

Run = TypeVar("Run", bound=Callable[..., object])

# Locks that checks hold while they run. `locks` are held exclusively, `shares` together with others that share them.
GPUS = "gpus"  # every GPU of the cluster
# Shared by entries that upgrade the release with a layer of values: `releases.layer`. Held by entries that remove its
# objects for a while, or read an upgrade's output.
UPGRADES = "upgrades"
PEOPLE, SERVING, MONITORING = "people", "serving", "monitoring"  # values of a layer: teams and log-in, options
VOLUMES = "volumes"  # the teams' claims and their contents
ALONE = "*"  # nothing else may run
APART = "a cluster of its own"  # in a full run: there, nothing else may run

# The lowest rank starts first. By default: entries that share the GPUs, then those that hold them all while the rest
# runs, then those that keep more of the others waiting.
FIRST, WAITS, TRAINS, ON_GPUS, ANY, LATE = 0, 10, 20, 30, 50, 70
BY_LOCK = {GPUS: 40, VOLUMES: 60, UPGRADES: 60, ALONE: 80}

TORCH, TENSORFLOW = "trainer-torch", "trainer-tensorflow"
PIPELINE_IMAGES = ("argoexec", "pipeline", TORCH)
KFP_IMAGES = ("argoexec", "pipeline", "python-311")  # for components as kfp writes them
DATA = "storage.bucket"
KINDS_CODE = ("scripts/trainyard/kinds", "manifests/jobs", "images/trainer", "charts/training-operator")
STORAGE_CODE = ("charts/minio", "charts/nfs", "scripts/trainyard_agent")
PIPELINE_CODE = (
    "scripts/trainyard/pipelines",
    "scripts/trainyard/observe",
    "pipelines",
    "charts/argo",
    "tools/step",
    "images/pipeline",
)
RELEASE_CODE = (
    "scripts/trainyard/chart",
    "scripts/trainyard_agent",
    "charts/*/patches",
    "charts/*/umbrella",
    "charts/trainyard/templates",
    "charts/*/component.yaml",
)


@dataclass(frozen=True)
class Entry:
    """One entry of a run.

    Args:
        ids: the checks that it reports; an entry that only cleans up reports none.
        parts: groups of its ids that can be chosen separately; empty: all come together.
        main: its ids that belong to the main job (`make e2e` without FULL=1).
        needs: ids that must have passed before; they are chosen with it.
        after: ids that run before it if they are chosen too, whether they pass or not.
        rank: which entry starts first if several could; its needs and predecessors have a lower one.
        images: names in versions.yaml; the entry waits for them.
        inputs: what it checks in addition to the chart, as paths from the repository's root; `.ci/run` runs it when one
            of them changed.
        long: it takes minutes while nothing else runs; CHANGED=1 leaves it to FULL=1 and reports that.
        login: its cluster's API server accepts tokens of an issuer; if chosen, a new cluster is made so.
        start: runs on every new cluster, in addition to the first of the chosen checks.
        asked: an environment variable without which it doesn't exist: a campaign.
    """

    ids: tuple[str, ...]
    run: Callable[[Context], object]
    main: tuple[str, ...] = ()
    needs: tuple[str, ...] = ()
    after: tuple[str, ...] = ()
    rank: int = ANY
    locks: frozenset[str] = frozenset()
    shares: frozenset[str] = frozenset()
    images: tuple[str, ...] = ()
    inputs: tuple[str, ...] = ()
    parts: tuple[tuple[str, ...], ...] = ()
    long: bool = False
    login: bool = False
    start: bool = False
    asked: str = ""

    def conflicts(self, other: Entry) -> bool:
        """Whether the two must not run at the same time."""
        if (APART in self.locks) != (APART in other.locks):
            return False
        if ALONE in self.locks | other.locks:
            return True
        return bool(self.locks & (other.locks | other.shares) or other.locks & self.shares)


REGISTERED: list[Entry] = []  # entries registered by `check` so far; `catalog.ENTRIES` has them all, in their order


def check(
    *ids: str,
    title: str = "",
    main: bool | tuple[str, ...] = False,
    each: bool = False,
    locks: Set[str] = frozenset(),
    shares: Set[str] = frozenset(),
    **more: Any,
) -> Callable[[Run], Run]:
    """Makes a function of a module in `checks/` a check that reports these ids; `more` are fields of Entry.

    Args:
        title: of its only id; the function then gets the context and the figures, and is the body of that check.
        main: the ids of the main job; True: all.
        each: every id can be chosen separately.
    """
    if each:
        more["parts"] = tuple((check_id,) for check_id in ids)
    usual = ON_GPUS if GPUS in shares else ANY
    more.setdefault("rank", max((BY_LOCK.get(lock, usual) for lock in locks), default=usual))

    def register(run: Run) -> Run:
        @wraps(run)
        def reported(context: Context) -> None:
            with context.recorder.check(ids[0], title) as figures:
                run(context, figures)

        chosen = main if isinstance(main, tuple) else ids if main else ()
        REGISTERED.append(
            Entry(ids, reported if title else run, chosen, locks=frozenset(locks), shares=frozenset(shares), **more)
        )
        return run

    return register
