"""Folders of a local run: one for the run, and others that replace buckets."""

import re
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import trainyard
from trainyard.errors import TrainyardError
from trainyard.paths import ROOT

TEAM, BUCKET = "local", "runs"
SHARED = "datasets/shared/mnist"  # data that the example pipelines read, and that the platform provides in a cluster
S3 = "s3://"


@dataclass(frozen=True)
class Folders:
    """`run` holds a folder for each step; `buckets` replaces the object store and is kept from run to run."""

    run: Path
    buckets: Path

    @property
    def name(self) -> str:
        """The run's name."""
        return self.run.name

    def of_uri(self, uri: str) -> Path:
        """The path of `s3://bucket/key` on this machine."""
        return self.buckets / uri.removeprefix(S3).strip("/")


def make(out: Path, pipeline: str) -> Folders:
    """Make a new run's folder in `out`, with the time in its name, and the folder of buckets next to it."""
    stem = f"{re.sub(r'[^a-z0-9]+', '-', pipeline.lower()).strip('-') or 'pipeline'}-{time.strftime('%Y%m%d-%H%M%S')}"
    found = out.resolve()
    for number in range(100):
        run = found / (stem if not number else f"{stem}-{number}")
        try:
            run.mkdir(parents=True)
        except FileExistsError:
            continue
        buckets = found / "buckets"
        buckets.mkdir(exist_ok=True)
        return Folders(run, buckets)
    raise TrainyardError("a hundred runs began in this second", where=str(out))


def offer_shared_data(folders: Folders, text: str) -> str:
    """Provides MNIST for a pipeline whose `text` names the shared data set; returns the data set's name, or "".

    Raises:
        TrainyardError: the data set is not available on this machine.
    """
    place = folders.buckets / SHARED
    if f"{S3}{SHARED}" not in text or place.exists():
        return ""
    from trainyard.pipelines.local import dataset

    try:
        found = dataset.find()
    except TrainyardError as error:
        what = f"the pipeline reads {S3}{SHARED}, and this machine has no copy of it ({error.what})"
        hint = f"put the four files of MNIST into {place}, or set TRAINYARD_DATA to a folder that holds mnist/"
        raise TrainyardError(what, hint=hint) from None
    place.parent.mkdir(parents=True, exist_ok=True)
    place.symlink_to(found.folder)
    return found.name


def environment(folders: Folders) -> dict[str, str]:
    """The environment of every step of a local run."""
    return {
        "TRAINYARD_LOCAL": "1",
        "TRAINYARD_BUCKETS": str(folders.buckets),
        "TRAINYARD_RUN": folders.name,
        "TRAINYARD_RUN_UID": folders.name,
        "TRAINYARD_TEAM": TEAM,
        "TRAINYARD_NAMESPACE": TEAM,
        "TRAINYARD_QUEUE": TEAM,
        "TRAINYARD_BUCKET": BUCKET,
        "TRAINYARD_EXPERIMENT": "default",
        "PYTHONPATH": python_path(),
        "PYTHONUNBUFFERED": "1",
    }


def python_path() -> str:
    """The path on which steps find trainyard, the example trainers and everything that this process can import."""
    first = [str(Path(trainyard.__file__).resolve().parents[1]), str(ROOT / "images" / "trainer")]
    rest = [entry for entry in sys.path if entry and entry not in first and Path(entry).is_dir()]
    return ":".join([*first, *(entry for entry in rest if "site-packages" in entry or "dist-packages" in entry)])
