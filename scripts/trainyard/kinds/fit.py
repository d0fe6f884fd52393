"""Whether the image of a job has what its code imports; and which other image of the platform has."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass, field

from trainyard import __version__
from trainyard.kinds import images
from trainyard.kinds.images import Trainer
from trainyard.kinds.imports import GONE, Import, compared
from trainyard.kinds.spec import JOB
from trainyard.kinds.team_config import TeamConfig


@dataclass(frozen=True)
class Missing:
    """An import that the image has not, in words."""

    one: Import
    what: str
    hint: str

    @property
    def where(self) -> str:
        """`train.py:3`."""
        return f"{self.one.file}:{self.one.line}"


@dataclass
class Fit:
    """What is known of a job's image.

    `image` is the one to take in place of the kind's, "" to stay with it, and `why` says it; `refused` fail for sure,
    `doubtful` where that import is run.
    """

    image: str = ""
    why: str = ""
    refused: list[Missing] = field(default_factory=list)
    doubtful: list[Missing] = field(default_factory=list)


def fit(
    found: Iterable[Import], framework: str, image: str, team_config: TeamConfig, listed: Collection[str] = ()
) -> Fit:
    """Compares the imports with the image that would be taken.

    Args:
        image: the one that was asked for; "" for the platform's own, which then may be another one.
        listed: packages that are installed beside the image's, by requirements.txt. What they bring is not known, so
            that nothing is sure any more.

    Raises:
        UsageError: the platform has no image for the framework.
    """
    have = images.of_reference(team_config.image(image, framework))
    if have is None:
        return Fit()  # of another image nothing is known
    named = {one for one in found if compared(_package(one.module)) not in listed}
    gone = sorted((one for one in named if have.missing(one.module)), key=lambda one: (one.file, one.line, one.module))
    sure = [one for one in gone if one.sure and not listed]
    if sure and not image and (other := _other(found, framework, team_config)):
        needed = ", ".join(dict.fromkeys(have.missing(one.module) for one in sure))
        still = [one for one in gone if not one.sure and other.missing(one.module)]
        doubtful = _told(still, other, framework, team_config)
        return Fit(team_config.images[other.key], f"image {other.name}, which has {needed}", [], doubtful)
    doubtful = _told([one for one in gone if one not in sure], have, framework, team_config)
    return Fit("", "", _told(sure, have, framework, team_config), doubtful)


def _package(module: str) -> str:
    return images.requirement(module).partition("==")[0]


def _other(found: Iterable[Import], framework: str, team_config: TeamConfig) -> Trainer | None:
    """The first image of the platform that runs the framework's jobs and has all that is imported for sure."""
    sure = [one.module for one in found if one.sure]
    for one in images.trainers():
        there = images.of_reference(team_config.images.get(one.key, "")) == one
        if framework in one.runs and there and not any(one.missing(module) for module in sure):
            return one
    return None


def _told(gone: Iterable[Import], have: Trainer, framework: str, team_config: TeamConfig) -> list[Missing]:
    told: dict[str, Missing] = {}
    for one in gone:
        part = have.missing(one.module)
        what = f"imports {part}, which the image {have.name} lacks"
        told.setdefault(part, Missing(one, what, _hint(part, framework, team_config)))
    return list(told.values())


def _hint(part: str, framework: str, team_config: TeamConfig) -> str:
    if part in GONE:
        return "it has left Python, and the images have Python 3.13: change the code"
    if part in images.NOWHERE:
        return images.NOWHERE[part]
    # What is compiled out of a package no further installation of it brings.
    lines = [] if "." in part else [f"write {images.requirement(part)} into requirements.txt"]
    with_it = [one for one in images.trainers() if not one.missing(part)]
    for one in with_it:
        if framework in one.runs:
            reference = team_config.images.get(one.key) or f"trainyard/{one.name}:{__version__}"
            return ", or ".join([f"take --image {reference}, which has it", *lines])
    if with_it:
        kinds = [kind for kind in with_it[0].runs if kind != JOB]
        return ", or ".join([f"take --framework {' or '.join(kinds)}, whose image {with_it[0].name} has it", *lines])
    return ", or ".join(lines)
