"""Programs that the product calls: helm, kubectl, argo."""

import shutil
from collections.abc import Callable
from pathlib import Path

from trainyard.errors import TrainyardError

_finders: list[Callable[[str], Path | None]] = []


def prefer(finder: Callable[[str], Path | None]) -> None:
    """From now on `finder` gives a program by its name; None leaves it to PATH. The last one given is asked
    first: so a checkout puts its pinned programs before those of the machine."""
    if finder not in _finders:
        _finders.insert(0, finder)


def find(name: str) -> Path:
    """Where the program is. Raises TrainyardError where neither a finder nor PATH has it."""
    for finder in _finders:
        if found := finder(name):
            return found
    if on_path := shutil.which(name):
        return Path(on_path)
    raise TrainyardError(f"{name} is not installed", hint=f"install {name} and see that PATH has it")
