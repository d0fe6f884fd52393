"""Artifacts of a run in the store: their places, and how to download them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from trainyard.errors import UsageError
from trainyard.kube import Kube
from trainyard.observe.listing import some
from trainyard.pipelines.runs.model import Object, Run, Step

if TYPE_CHECKING:
    from trainyard.training.transfer import Store

DATA = "data"  # name of the bytes of a kfp artifact, next to meta.json
SHOWN = 12  # names in a message
LINEAGE = "lineage"  # an artifact that trainyard itself writes; logs end in -logs


@dataclass(frozen=True)
class Place:
    """An artifact of a step, and the place of its bytes."""

    step: str
    name: str
    bucket: str
    key: str

    @property
    def uri(self) -> str:
        """The URI in the form that S3 clients accept."""
        return f"s3://{self.bucket}/{self.key}"


def place(run: Run, outputs: Object, name: str, step: str = "") -> Place | None:
    """The place of an output artifact; None if the step left none of that name."""
    for artifact in outputs.get("artifacts") or []:
        s3 = artifact.get("s3") or {}
        if artifact.get("name") == name and s3.get("key"):
            return Place(step, name, s3.get("bucket") or _bucket(run), s3["key"])
    return None


def artifacts(run: Run, step: Step | None = None) -> list[Place]:
    """Artifacts that the steps left: kfp's, without logs and lineage."""
    return [found for each in ([step] if step else run.steps) for found in _of(run, each)]


def lineage(run: Run) -> list[Place]:
    """The places of the steps' lineage files."""
    return [found for step in run.steps if (found := place(run, step.outputs, LINEAGE, step.name))]


def find(run: Run, wanted: str) -> Place:
    """The artifact `step/name`; `name`, or the end of the step's name before it, is enough if unique.

    Raises UsageError.
    """
    everything = artifacts(run)
    found = [one for one in everything if f"{one.step}/{one.name}" == wanted]
    found = found or [one for one in everything if f"/{one.step}/{one.name}".endswith(f"/{wanted}")]
    if len(found) == 1:
        return found[0]
    names = some((f"{one.step}/{one.name}" for one in found or everything), SHOWN) or "none"
    what = f"several artifacts are called {wanted}: {names}" if found else f"no artifact {wanted}; there are: {names}"
    raise UsageError(what, where=f"run {run.name}", hint=f"`trainyard runs artifacts {run.name}` lists them")


@contextmanager
def reached(kube: Kube) -> Iterator[Store]:
    """The team's store, for the duration of the block. Raises TrainyardError if it can't be reached."""
    from trainyard import contract
    from trainyard.kinds import TeamConfig
    from trainyard.training.transfer import open_store

    with open_store(kube, TeamConfig.of(contract.live(kube), kube.namespace)) as store:
        yield store


def fetch(store: Store, found: Place, to: Path) -> Path:
    """Download an artifact to `to`, as a file, or a folder if it is one. Raises TrainyardError."""
    at = f"{found.bucket}/{found.key.rstrip('/')}"
    names = store.list(f"{at}/")
    if not names:
        store.get(at, to)
    elif DATA in names:
        store.get(f"{at}/{DATA}", to)
    else:
        below = any(name.startswith(f"{DATA}/") for name in names)
        store.tree(f"{at}/{DATA}/" if below else f"{at}/", to)
    return to


def _of(run: Run, step: Step) -> Iterator[Place]:
    for artifact in step.outputs.get("artifacts") or []:
        name = artifact.get("name", "")
        if name == LINEAGE or name.endswith("-logs"):
            continue
        if found := place(run, step.outputs, name, step.name):
            yield found


def _bucket(run: Run) -> str:
    reference = (run.raw.get("status") or {}).get("artifactRepositoryRef") or {}
    return str(((reference.get("artifactRepository") or {}).get("s3") or {}).get("bucket", ""))
