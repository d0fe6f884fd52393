"""`trainyard audit`: what we hold, asked of every database of known vulnerabilities that can be reached."""

from __future__ import annotations

import datetime
import json
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from trainyard.errors import TrainyardError
from trainyard.paths import OUT, ROOT
from trainyard_dev import engine as engines
from trainyard_dev.audit import advisories, debian, held, report, sources
from trainyard_dev.audit.debian import Contents
from trainyard_dev.audit.held import Modules
from trainyard_dev.audit.report import Report
from trainyard_dev.audit.sources import Fetch, Open
from trainyard_dev.images import source as image_source
from trainyard_dev.images.build import local_ref
from trainyard_dev.versions import load, read

AREAS = ("python", "go", "debian", "support")
RESULT = "audit.json"


@dataclass(frozen=True)
class Means:
    """What an audit asks with; tests put others in."""

    fetch: Fetch
    listed: Callable[[Path, dict[str, Any]], Modules]
    images: Callable[[], tuple[list[Contents], list[Open]]]
    today: datetime.date


@click.command()
@click.option("--only", "areas", multiple=True, type=click.Choice(AREAS), help="Not everything, but this.")
@click.option("--advisories", "copies", multiple=True, type=click.Path(exists=True, file_okay=False, path_type=Path),
              envvar="TRAINYARD_ADVISORIES", metavar="FOLDER",
              help="A copy of a database, in OSV's format; asked besides the others.")  # fmt: skip
@click.option(
    "--offline", is_flag=True, help="Ask nobody over the network: what that leaves unasked is listed as open."
)
def audit(areas: tuple[str, ...], copies: tuple[Path, ...], offline: bool) -> int:
    """Ask databases of known vulnerabilities about all that is pinned, compiled and installed into images.

    What has left its support since support.yaml was last gone through is a finding, too.

    Exit code 0: nothing found, everything asked. 1: something found. 3: nothing found, but not everything asked.
    """
    means = Means(refused if offline else sources.fetch, held.compiled, built_images, datetime.date.today())
    found = collect(ROOT, read(ROOT), areas or AREAS, copies, means)
    for line in found.lines():
        click.echo(line)
    OUT.mkdir(exist_ok=True)
    (OUT / RESULT).write_text(json.dumps(found.data(), indent=2) + "\n")
    return found.code


def collect(root: Path, raw: dict[str, Any], areas: Sequence[str], copies: Sequence[Path], means: Means) -> Report:
    """Everything that was found and what was not asked, for the chosen areas.

    Raises:
        TrainyardError: a file of ours or a copy of a database can't be read.
    """
    gone_through, known = advisories.own()
    result = Report(notes=[f"our own list of advisories, gone through on {gone_through}: {len(known)}"])
    parts: list[advisories.Part] = []
    if "python" in areas:
        mine = held.python(root)
        parts += mine.parts
        result.notes.append(f"Python: {_kinds(mine.parts)} packages in {_places(mine.parts)} files")
    if "go" in areas:
        modules = held.go(root, raw, means.listed)
        parts += modules.parts
        result.open += modules.open
        result.notes.append(f"Go: {_kinds(modules.parts)} modules in {_places(modules.parts)} sets")
    if parts:
        answers = [sources.osv(parts, means.fetch), *(sources.copy(folder, means.today) for folder in copies)]
        for answer in answers:
            known += answer.advisories
            result.open += answer.open
        for folder, answer in zip(copies, answers[1:], strict=True):
            result.notes.append(f"{folder}: {len(answer.advisories)} advisories as of {answer.day}")
    if "debian" in areas:
        images, left = means.images()
        result.open += left
        parts += _debian(images, known, result, means.fetch, debian.archive_of_this_machine())
    if "support" in areas:
        for ended, said in (held.past_support(root, raw, means.today), held.old_packages(raw, means.today)):
            parts += ended
            known += said
    result.findings, result.accepted = report.judge(parts, known, report.acceptances(), means.today)
    return result


def _debian(images: Sequence[Contents], known: list[advisories.Advisory], result: Report,
            fetch: Fetch, archive: str) -> list[advisories.Part]:  # fmt: skip
    suites: dict[str, set[str]] = defaultdict(set)
    for one in images:
        result.notes.append(f"image {one.image}: {len(one.packages)} Debian packages, {one.suite}, made {one.made}")
        suites[one.suite] |= one.packages.keys()
    binaries = [part for one in images for part in one.binaries()]
    origins = [part for one in images for part in one.of_source()]
    held_there = {suite: frozenset(names) for suite, names in suites.items()}
    for answer in (debian.archive(sorted(held_there), held_there, fetch, archive), debian.tracker(origins, fetch)):
        known += answer.advisories
        result.open += answer.open
    return binaries + origins


def refused(url: str, body: bytes | None) -> bytes:
    """In place of the network where none is wanted."""
    raise OSError("--offline was given")


def built_images() -> tuple[list[Contents], list[Open]]:
    """The contents of every image of ours that this machine's engine has as the tree describes it today."""
    found: list[Contents] = []
    left: list[Open] = []
    mine, raw = list(load().images.values()), load().raw["images"]
    try:
        engine = engines.find()
    except TrainyardError as error:
        return [], [Open(f"what {len(mine)} images hold", error.what)]
    base = image_source.choose("build").base_ref
    for image in mine:
        ref = local_ref(image, base)
        try:
            if not engine.has_image(ref):
                left.append(Open(f"what the image {image.name} holds", "it is not built here"))
            elif (one := debian.contents(engine, image.name, ref, held.ships(raw[image.name]))) is not None:
                found.append(one)
        except TrainyardError as error:
            left.append(Open(f"what the image {image.name} holds", error.what))
    return found, left


def _kinds(parts: Sequence[advisories.Part]) -> int:
    return len({(part.name, part.version) for part in parts})


def _places(parts: Sequence[advisories.Part]) -> int:
    return len({part.where for part in parts})
