"""Data sets in the cluster, accessed through a short-lived pod."""

import copy
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from trainyard.contract import Contract
from trainyard.data.places import Place
from trainyard.errors import TrainyardError, UsageError
from trainyard.kinds import TeamConfig
from trainyard.kube import Kube, KubeError
from trainyard.times import stamp
from trainyard.training.transfer import Store, folder, open_store

FORBIDDEN = 403


@dataclass(frozen=True)
class Set:
    """Content of one name. `size` is in bytes; `changed` is the time of its newest file."""

    place: Place
    files: int
    size: int
    changed: datetime | None

    def data(self) -> dict[str, Any]:
        """The set as plain data."""
        changed = stamp(self.changed)
        return {"name": self.place.name, "uri": self.place.uri, "files": self.files, "bytes": self.size,
                "changed": changed}  # fmt: skip


@contextmanager
def opened(kube: Kube, contract: Contract, places: Sequence[Place], *, write: bool = False) -> Iterator[Store]:
    """Opens the store as the team, or as the platform if only the platform's keys can write the place.

    Raises:
        UsageError: this command can't write the place.
        TrainyardError: the caller may not, the claim does not exist, or the pod did not start.
    """
    first = places[0]
    if write and first.read_only:
        raise UsageError(f"{first.name}: {first.read_only}", hint="upload it for your team: omit the part before /")
    platform = kube.namespace == contract.namespace or (write and first.platform)
    config = TeamConfig.of_platform(contract) if platform else TeamConfig.of(contract, kube.namespace)
    if first.claim and not kube.find(kube.path("v1", "persistentvolumeclaims", first.claim)):
        hint = "list your claims with `kubectl get pvc`; the platform may have no shared volumes"
        raise TrainyardError(f"no claim {first.claim} in {kube.namespace}", hint=hint)
    at = copy.copy(kube)
    at.namespace = config.team.name
    try:
        with open_store(at, config, first.claim) as store:
            yield store
    except KubeError as error:
        if not (platform and error.status == FORBIDDEN):
            raise
        what = f"only the platform engineer can upload data for all teams: {error.what}"
        hint = f"omit {first.name.partition('/')[0]}/ to upload it for your team, or ask your platform engineer"
        raise KubeError(what, status=error.status, hint=hint) from None


def listed(store: Store, root: Place) -> list[Set]:
    """Lists the data sets of a kind. Raises TrainyardError."""
    before = f"{root.name}/" if root.name else ""
    return [
        Set(Place(before + row["name"], f"{root.at}/{row['name']}", root.claim), row["files"], row["bytes"], _time(row))
        for row in folder.listed(store, "sets", root.at)
    ]


def files(store: Store, place: Place) -> list[Set]:
    """Lists the files of a data set, each as a Set. Raises TrainyardError if there are none."""
    rows = folder.listed(store, "files", place.at)
    if not rows:
        raise missing(place)
    return [Set(Place(row["name"], f"{place.at}/{row['name']}", place.claim), 1, row["size"], _time(row))
            for row in rows]  # fmt: skip


def missing(place: Place) -> TrainyardError:
    """The error for a name that does not exist."""
    return TrainyardError(f"no data set {place.name}", where=place.uri, hint="list them with `trainyard data list`")


def _time(row: dict[str, Any]) -> datetime | None:
    changed = row.get("changed")
    return datetime.fromtimestamp(int(changed), UTC) if changed else None
