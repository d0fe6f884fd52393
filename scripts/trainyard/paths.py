"""Where things lie: the repository, the cache outside of it, results and data sets."""

from __future__ import annotations

import os
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
OUT = ROOT / "out"


def cache_dir() -> Path:
    """The folder for what is built or downloaded: `$TRAINYARD_CACHE`, else `~/.cache/trainyard`. Created if absent."""
    folder = Path(os.environ.get("TRAINYARD_CACHE") or Path.home() / ".cache" / "trainyard")
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def data_dir() -> Path | None:
    """The folder of data sets that `$TRAINYARD_DATA` names, or None where it is unset or absent."""
    value = os.environ.get("TRAINYARD_DATA")
    return Path(value).resolve() if value and Path(value).is_dir() else None
