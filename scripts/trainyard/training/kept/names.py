"""Which pods were a run's, by their names: the run itself and its pods are gone, and with them their labels.

Every operator calls a pod after its run. So do we find them, and nobody needs the right to read all pods of the cluster
to keep logs (docs/decisions/0025-logs.md).
"""

import re
from collections.abc import Iterable, Sequence

from trainyard.kinds import registry
from trainyard.kinds.places import ROLES

KNOWN = sorted({role.lower() for kind in registry.KINDS for role in kind.roles} | set(ROLES), key=len, reverse=True)
RANK = re.compile(rf"({'|'.join(KNOWN)})(-\d+)?")
OF_ANOTHER = re.compile(rf".+-({'|'.join(KNOWN)})(-\d+)?")  # whose job has this one's name and a further word
# What Kubernetes puts after the name of a Job, with the index of an indexed one.
OF_JOB = re.compile(r"(\d+-)?[bcdfghjklmnpqrstvwxz2456789]{5}")
# What stands beside a run's own container in its pods: Argo's, and ours.
BESIDE = re.compile("init|wait|trainyard-.*")


def pods(run: str, names: Iterable[str]) -> list[str]:
    """Those of the names that are the run's pods, the one that speaks for it first."""
    own = [name for name in names if name == run or name.startswith(f"{run}-")]
    ranks = [name for name in own if RANK.fullmatch(rest(run, name))]
    if ranks:
        return sorted(ranks, key=lambda name: _order(rest(run, name)))
    if of_job := sorted(name for name in own if OF_JOB.fullmatch(rest(run, name))):
        return of_job
    return sorted(name for name in own if not OF_ANOTHER.fullmatch(rest(run, name)))


def speaks(run: str, name: str) -> bool:
    """Whether the pod is a rank of a training job; one rank speaks for all."""
    return bool(RANK.fullmatch(rest(run, name)))


def chosen(run: str, names: Sequence[str], step: str) -> list[str]:
    """The pods that a step or a rank is: `worker-1`, a pod's name, a step of a pipeline."""
    exact = [name for name in names if step in (name, rest(run, name))]
    # A pod of a step is called RUN-STEP-NUMBER.
    return exact or [name for name in names if rest(run, name).rpartition("-")[0] == step.rpartition("/")[2]]


def rest(run: str, name: str) -> str:
    """What stands after the run's name."""
    return name[len(run) + 1 :]


def containers(names: Iterable[str]) -> list[str]:
    """The containers of a pod that are the run's own; all of them where none is."""
    listed = sorted(names)
    return [name for name in listed if not BESIDE.fullmatch(name)] or listed


def _order(rank: str) -> tuple[int, int, str]:
    role, _, index = rank.rpartition("-") if rank[-1:].isdigit() else (rank, "", "0")
    return (ROLES.index(role) if role in ROLES else len(ROLES), int(index), rank)
