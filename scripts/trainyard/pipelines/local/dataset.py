"""The images to train on: MNIST from `$TRAINYARD_DATA`, else Fashion-MNIST from Debian's package."""

import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path

from trainyard.errors import TrainyardError
from trainyard.paths import cache_dir, data_dir
from trainyard.pipelines.local import debian

FILES = (
    "train-images-idx3-ubyte.gz",
    "train-labels-idx1-ubyte.gz",
    "t10k-images-idx3-ubyte.gz",
    "t10k-labels-idx1-ubyte.gz",
)
PACKAGE = "dataset-fashion-mnist"


@dataclass(frozen=True)
class Dataset:
    """Four gzip files in idx format, and the data set's name for the report."""

    name: str
    folder: Path


def find() -> Dataset:
    """MNIST from `$TRAINYARD_DATA` if it is there, else Fashion-MNIST, downloaded once into the cache.

    Raises:
        TrainyardError: neither is available.
    """
    given = data_dir()
    if given and all((given / "mnist" / name).is_file() for name in FILES):
        return Dataset("MNIST", given / "mnist")
    target = cache_dir() / "data" / "fashion-mnist"
    if not all((target / name).is_file() for name in FILES):
        _unpack_package(target)
    return Dataset(f"Fashion-MNIST (Debian package {PACKAGE})", target)


def _unpack_package(target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=target.parent) as work:
        root = debian.unpack([PACKAGE], Path(work), hint="set TRAINYARD_DATA to a folder that holds mnist/")
        found = {path.name: path for path in root.rglob("*.gz") if path.name in FILES}
        if set(found) != set(FILES):
            raise TrainyardError(f"the package {PACKAGE} lacks {sorted(set(FILES) - set(found))}")
        staged = Path(work) / "files"
        staged.mkdir()
        for name, path in found.items():
            shutil.copy(path, staged / name)
        shutil.rmtree(target, ignore_errors=True)
        staged.rename(target)
