"""Paths: the repository (or its copy in the installed package), the cache, results and data sets."""

import os
from pathlib import Path

_CHECKOUT, _PACKED = Path(__file__).resolve().parents[2], Path(__file__).resolve().parent / "tree"
INSTALLED = _PACKED.is_dir()  # pip puts the tree next to the code; a checkout has none there
ROOT = _PACKED if INSTALLED else _CHECKOUT
CHART = ROOT / "charts" / "trainyard"
OUT = (Path.cwd() if INSTALLED else ROOT) / "out"


def cache_dir() -> Path:
    """The folder for built or downloaded files: `$TRAINYARD_CACHE`, else `~/.cache/trainyard`. Created if absent."""
    folder = Path(os.environ.get("TRAINYARD_CACHE") or Path.home() / ".cache" / "trainyard")
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def data_dir() -> Path | None:
    """The folder of data sets in `$TRAINYARD_DATA`, or None if it is unset or does not exist."""
    value = os.environ.get("TRAINYARD_DATA")
    return Path(value).resolve() if value and Path(value).is_dir() else None
