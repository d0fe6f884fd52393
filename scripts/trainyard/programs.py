"""Lookup of the programs that the product runs: helm, kubectl, argo."""

import shutil
from collections.abc import Callable
from pathlib import Path

from trainyard.errors import TrainyardError

_finders: list[Callable[[str], Path | None]] = []


def prefer(finder: Callable[[str], Path | None]) -> None:
    """Registers a finder, which returns the path of a program, or None to continue the search. The latest finder comes
    first: so a checkout puts its pinned programs before those of the machine."""
    if finder not in _finders:
        _finders.insert(0, finder)


def find(name: str) -> Path:
    """Path of the program. Raises TrainyardError if neither a finder nor PATH has it."""
    for finder in _finders:
        if found := finder(name):
            return found
    if on_path := shutil.which(name):
        return Path(on_path)
    raise TrainyardError(f"{name} is not installed", hint=f"install {name} and see that PATH has it")
