"""What a folder's requirements name, read before the code is sent: a line that no pod can install is refused here."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from trainyard.errors import UsageError
from trainyard.kinds import packages
from trainyard_agent.requirements import RequirementError, Requirements, read

FILE = "requirements.txt"


@dataclass(frozen=True)
class Packages:
    """The requirements of a folder. `key`: where what they name is kept; "" when there is nothing to install."""

    file: str = ""
    key: str = ""
    said: tuple[str, ...] = ()  # what whoever sends the code should know


def of(folder: Path, wanted: str | None, team: str, image: str, site: Mapping[str, Any]) -> Packages:
    """The packages of a folder.

    Args:
        wanted: the setting; None: the usual file, where there is one; "": none.
        image: what they are installed for.
        site: `packages` of the contract.

    Raises:
        UsageError: a file is missing, or a line can't be installed in a pod.
    """
    if wanted == "" or (wanted is None and not (folder / FILE).is_file()):
        return Packages()
    name = wanted or FILE
    try:
        found = read(lambda one: (folder / one).read_text(encoding="utf-8"), name)
    except RequirementError as error:
        raise UsageError(error.what, where=error.where, hint=error.hint) from None
    if not found.lines:
        return Packages()
    index = str(site.get("index") or "")
    said = [_told(name, found, index)]
    said += [
        f"{where}: {option} is left out, the site says where packages come from" for where, option in found.ignored
    ]
    return Packages(name, packages.key(team, found.digest(image, index)), tuple(said))


def _told(name: str, found: Requirements, index: str) -> str:
    many = "1 requirement" if len(found.lines) == 1 else f"{len(found.lines)} requirements"
    return f"{name}: {many}, from {index or 'what the image has'} and the platform's wheels, installed once"
