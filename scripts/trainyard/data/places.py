"""Location of a data set by its name, and who may upload it."""

import re
from dataclasses import dataclass
from pathlib import Path

from trainyard.contract import Contract
from trainyard.errors import TrainyardError, UsageError
from trainyard.kinds.team_config import BUCKET as RESULTS

OWN, SHARED, WORKSPACE = "", "shared", "workspace"
USUAL = "datasets"
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
SPELLED = "use letters, digits, dots, hyphens and underscores, starting with a letter or digit"


@dataclass(frozen=True)
class Place:
    """A data set, or, without the last part of the name, all data sets of a kind.

    Args:
        name: name as users write it: `digits`, `shared/mnist`, `workspace/notes`.
        at: location in a pod's terms: `bucket/prefix`, or the path of a folder.
        claim: claim that contains it; "" for the object store.
        read_only: why this command can't upload it; "" if it can.
        platform: whether writing it needs the platform's own keys.
    """

    name: str
    at: str
    claim: str = ""
    read_only: str = ""
    platform: bool = False

    @property
    def uri(self) -> str:
        """URI for pipelines and scripts; for a folder of a claim, its path in the claim."""
        return f"{self.claim}:{self.at.removeprefix(f'/{self.claim}') or '/'}" if self.claim else f"s3://{self.at}"


def place(contract: Contract, team: str, name: str) -> Place:
    """The data set with that name, as seen by a team. Raises UsageError for an invalid name."""
    kind, slash, last = name.partition("/")
    if not slash:
        kind, last = OWN, kind
    known = {root.name: root for root in _kinds(contract, team)}
    if kind not in known or (slash and not kind) or (not slash and last in known):
        named = ", ".join(f"{one}/" for one in known if one)
        raise UsageError(f"invalid name of a data set: {name!r}", hint=f"use {named} before the slash; {SPELLED}")
    if not NAME.fullmatch(last):
        raise UsageError(f"invalid name of a data set: {last!r}", hint=SPELLED)
    root = known[kind]
    return Place(name, f"{root.at}/{last}", root.claim, root.read_only, root.platform)


def named_after(folder: Path) -> str:
    """Default name of a folder's data set. Raises UsageError."""
    found = folder.resolve().name
    if not NAME.fullmatch(found):
        raise UsageError(f"invalid name of a data set: {found!r}", hint=f"use a name: trainyard data put {folder} NAME")
    return found


def roots(contract: Contract, team: str, kind: str = "") -> list[Place]:
    """Places that a list covers: all buckets from which the team may read data, or the one kind that is named."""
    known = _kinds(contract, team)
    if kind:
        return [root for root in known if root.name == kind]
    return [root for root in known if not root.claim and (root.name or team != contract.namespace)]


def is_kind(contract: Contract, name: str) -> bool:
    """Whether the name is a kind, not a data set: `shared`, `raw-data`, `workspace`."""
    return any(name == root.name for root in _kinds(contract, "x") if root.name)


def bucket_of(contract: Contract) -> str:
    """The bucket of data sets, where each team has its own prefix. Raises TrainyardError if there is none."""
    kept = (RESULTS, contract.pipelines.get("bucket"))
    own = [one.name for one in contract.buckets.values() if one.teams == "own" and one.name not in kept]
    if not own:
        hint = "add one to global.contract.storage.buckets, with teams: own"
        raise TrainyardError("the platform has no bucket for data sets", where=contract.source, hint=hint)
    return USUAL if USUAL in own else own[0]


def _kinds(contract: Contract, team: str) -> list[Place]:
    """All kinds, named by the part before the slash."""
    bucket = bucket_of(contract)
    found = [Place(OWN, f"{bucket}/{team}"), Place(SHARED, f"{bucket}/{SHARED}", platform=True)]
    for one in contract.buckets.values():
        if one.teams == "read":
            why = "all teams read it, none may write it: upload it with keys of the store itself, see docs/storage.md"
            found.append(Place(one.name, one.name, read_only=why))
    return [*found, Place(WORKSPACE, f"/{WORKSPACE}", claim=WORKSPACE)]
