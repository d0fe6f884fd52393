"""A folder's requirements, read before the code is sent; rejects lines that no pod can install."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from trainyard.errors import UsageError
from trainyard.kinds import JobSpec, TeamConfig, packages, pods
from trainyard.kinds.requirements import Listed, of_folder
from trainyard_agent.runs.requirements import Requirements

MOST = 60_000  # characters in a manifest: Linux limits a program's variable to 128 KiB


@dataclass(frozen=True)
class Packages:
    """The requirements of a folder. `key`: location of the packages; "" if there is nothing to install."""

    file: str = ""
    key: str = ""
    said: tuple[str, ...] = ()  # notes for the sender of the code
    files: Mapping[str, str] = field(default_factory=dict)  # the file and its includes: name -> text


def of(listed: Listed, team: str, image: str, site: Mapping[str, Any]) -> Packages:
    """The packages of a folder.

    Args:
        image: image for which they are installed.
        site: `packages` of the contract.
    """
    found = listed.found
    if not found.lines:
        return Packages()
    index = str(site.get("index") or "")
    said = [_summary(listed.file, found, index)]
    said += [f"{where}: {option} is ignored, since the site sets the package index" for where, option in found.ignored]
    return Packages(listed.file, packages.key(team, found.digest(image, index)), tuple(said), listed.files)


def without_code(spec: JobSpec, folder: Path, team_config: TeamConfig) -> tuple[JobSpec, tuple[str, ...]]:
    """The job of an image that has its code, with the packages in the settings, and notes on them.

    Only a file named in the settings is used: the current folder is not part of the job.

    Raises:
        UsageError: as `of`, or the files exceed the size limit of a manifest.
    """
    if not spec.requirements:
        return spec, ()
    image = pods.image_of(spec, team_config)
    needs = of(of_folder(folder, spec.requirements), team_config.team.name, image, team_config.contract.packages)
    if not needs.key:
        return replace(spec, requirements=""), ()
    if sum(map(len, needs.files.values())) > MOST:
        hint = f"shorten them, or send the code, too: trainyard train -- {' '.join(spec.command)}"
        raise UsageError(f"the requirements have more than {MOST} characters", where=needs.file, hint=hint)
    command = packages.started(spec.command)
    spec = replace(spec, requirements=needs.file, requirement_files=needs.files, packages=needs.key, command=command)
    return spec, needs.said


def _summary(name: str, found: Requirements, index: str) -> str:
    many = "1 requirement" if len(found.lines) == 1 else f"{len(found.lines)} requirements"
    return f"{name}: {many}, from {index or 'what the image has'} and the platform's wheels, installed once"
