"""Comparison of a job's imports with its image, and search for a platform image that has them all."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from trainyard import __version__
from trainyard.errors import UsageError
from trainyard.kinds import images, registry
from trainyard.kinds.images import Trainer
from trainyard.kinds.imports import GONE, Import
from trainyard.kinds.requirements import PYTHON
from trainyard.kinds.spec import JOB
from trainyard.kinds.team_config import TeamConfig


@dataclass(frozen=True)
class Missing:
    """An import that the image lacks. `part`: the missing part of the module's name."""

    one: Import
    part: str
    what: str
    hint: str

    @property
    def where(self) -> str:
        """`train.py:3`."""
        return f"{self.one.file}:{self.one.line}"


@dataclass
class Fit:
    """Result of comparing a job's imports with its image.

    `image` replaces the kind's image, "" to keep it, and `why` tells the reason; `refused` imports fail for sure,
    `doubtful` ones if that import is executed.
    """

    image: str = ""
    why: str = ""
    refused: list[Missing] = field(default_factory=list)
    doubtful: list[Missing] = field(default_factory=list)


def refusal(lacking: Sequence[Missing]) -> UsageError:
    """One error for everything that the image lacks, so that one change of the requirements fixes it."""
    first, *others = lacking
    what = "; ".join([first.what, *(f"{one.where} {one.what}" for one in others)])
    hints = [f"for {one.part} {one.hint}" if others else one.hint for one in lacking]
    return UsageError(what, where=first.where, hint="; ".join(hints))


def fit(
    found: Iterable[Import],
    framework: str,
    reference: str,
    team_config: TeamConfig,
    *,
    asked: bool = False,
    listed: Collection[str] = (),
) -> Fit:
    """Compares the imports with the job's image.

    Args:
        reference: the image.
        team_config: has the platform's images; another may replace this one, but only one with CUDA if this one has it.
        asked: whether the user named the image, so that it isn't replaced.
        listed: packages that requirements.txt installs in addition to the image's. Their dependencies are unknown, so
            nothing is refused if there are any.
    """
    have = images.of_reference(reference)
    if have is None:
        return Fit()  # the contents of any other image are unknown
    known = team_config.contract.cuda_images if have.cuda else team_config.contract.images
    named = sorted(
        (one for one in found if images.packages(one.module).isdisjoint(listed)),
        key=lambda one: (one.file, one.line, one.module),
    )
    sure = [one.module for one in named if one.sure]
    lacking = [one for one in named if one.sure and have.missing(one.module)]
    if lacking and not asked and (other := _other(named, framework, known, have.cuda)):
        needed = ", ".join(dict.fromkeys(have.missing(one.module) for one in lacking))
        told = _what(named, other, framework, known, sure)
        return Fit(known[other.key], f"image {other.name}, which has {needed}", [], told)
    doubtful = [one for one in named if listed or not one.sure]
    refused = [] if listed else lacking
    return Fit("", "", _what(refused, have, framework, known, sure), _what(doubtful, have, framework, known, sure))


def _other(found: Iterable[Import], framework: str, known: Mapping[str, str], cuda: bool) -> Trainer | None:
    """The first platform image that runs the framework's jobs and has every import that is sure."""
    sure = [one.module for one in found if one.sure]
    for one in images.trainers(cuda=cuda):
        there = images.of_reference(known.get(one.key, "")) == one
        if framework in one.runs and there and not any(one.missing(module) for module in sure):
            return one
    return None


def _what(
    found: Iterable[Import], have: Trainer, framework: str, known: Mapping[str, str], sure: Sequence[str]
) -> list[Missing]:
    """Imports that the image lacks. `sure`: modules that an image suggested instead must have, too."""
    told: dict[str, Missing] = {}
    for one in found:
        if part := have.missing(one.module):
            what = f"imports {part}, which the image {have.name} lacks"
            told.setdefault(part, Missing(one, part, what, _hint(part, framework, known, sure, have.cuda)))
    return list(told.values())


def _hint(part: str, framework: str, known: Mapping[str, str], sure: Sequence[str], cuda: bool) -> str:
    if part in GONE:
        return f"Python {PYTHON} of the images no longer has the module: change the code"
    if part in images.NOWHERE:
        return images.NOWHERE[part]
    # Installing a package again does not restore a part that was compiled out.
    lines = [] if "." in part else [f"write {images.requirement(part, cuda=cuda)} into requirements.txt"]
    trainers = images.trainers(cuda=cuda)
    due = [module for module in sure if any(not one.missing(module) for one in trainers)]  # minus what no image has
    with_it = [one for one in trainers if not any(one.missing(module) for module in (part, *due))]
    for one in with_it:
        if framework in one.runs:
            reference = known.get(one.key) or f"trainyard/{one.name}:{__version__}"
            return ", or ".join([f"use --image {reference}, which has it", *lines])
    # Code that needs this kind of job, as MPI's ranks need mpirun, does not run as another kind.
    bound = registry.of_framework(framework).modules
    if with_it and not any(module.partition(".")[0] in bound for module in sure):
        kinds = [kind for kind in with_it[0].runs if kind != JOB]
        return ", or ".join([f"use --framework {' or '.join(kinds)}, whose image {with_it[0].name} has it", *lines])
    beside = ", ".join(dict.fromkeys(module for module in due if not f"{module}.".startswith(f"{part}.")))
    return ", or ".join(lines) or f"no image of the platform has it{beside and f' beside {beside}'}: use one of yours"
