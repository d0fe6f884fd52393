"""Finds a run's pods by their names: the run and its pods are deleted, and their labels with them.

Every operator names its pods after the run. So names are enough, and no account needs the permission to read all pods
of the cluster to keep logs (docs/decisions/0025-logs.md).
"""

import re
from collections.abc import Iterable, Sequence

from trainyard.kinds import registry
from trainyard.kinds.places import ROLES

KNOWN = sorted({role.lower() for kind in registry.KINDS for role in kind.roles} | set(ROLES), key=len, reverse=True)
RANK = re.compile(rf"({'|'.join(KNOWN)})(-\d+)?")
OF_ANOTHER = re.compile(rf".+-({'|'.join(KNOWN)})(-\d+)?")  # pods of a job whose name begins with this job's name
# Suffix that Kubernetes appends to the name of a Job, with the index of an indexed Job.
OF_JOB = re.compile(r"(\d+-)?[bcdfghjklmnpqrstvwxz2456789]{5}")
# Helper containers in a run's pods: Argo's, and ours.
BESIDE = re.compile("init|wait|trainyard-.*")


def pods(run: str, names: Iterable[str]) -> list[str]:
    """The names that are pods of the run; the pod that represents the run is first."""
    own = [name for name in names if name == run or name.startswith(f"{run}-")]
    ranks = [name for name in own if RANK.fullmatch(rest(run, name))]
    if ranks:
        return sorted(ranks, key=lambda name: _order(rest(run, name)))
    if of_job := sorted(name for name in own if OF_JOB.fullmatch(rest(run, name))):
        return of_job
    return sorted(name for name in own if not OF_ANOTHER.fullmatch(rest(run, name)))


def speaks(run: str, name: str) -> bool:
    """Whether the pod is a rank of a training job; one rank represents all."""
    return bool(RANK.fullmatch(rest(run, name)))


def chosen(run: str, names: Sequence[str], step: str) -> list[str]:
    """The pods of a step or a rank, such as `worker-1`, a pod's name, or a step of a pipeline."""
    exact = [name for name in names if step in (name, rest(run, name))]
    # The name of a step's pod is RUN-STEP-NUMBER.
    return exact or [name for name in names if rest(run, name).rpartition("-")[0] == step.rpartition("/")[2]]


def rest(run: str, name: str) -> str:
    """The part of the name after the run's name."""
    return name[len(run) + 1 :]


def containers(names: Iterable[str]) -> list[str]:
    """The main containers of a pod; all of them if it has none."""
    listed = sorted(names)
    return [name for name in listed if not BESIDE.fullmatch(name)] or listed


def _order(rank: str) -> tuple[int, int, str]:
    role, _, index = rank.rpartition("-") if rank[-1:].isdigit() else (rank, "", "0")
    return (ROLES.index(role) if role in ROLES else len(ROLES), int(index), rank)
