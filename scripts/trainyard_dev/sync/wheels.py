"""Writes `requirements.txt` of images: from the list of images and `requirements.lock`, with a hash for each package.

pip chooses a package's file as it does in the image, and reports its hash and requirements.
"""

import json
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name

from trainyard.errors import TrainyardError
from trainyard.kinds.requirements import MARKERS, PYTHON
from trainyard.shell import run
from trainyard.training.wheels import tags
from trainyard_dev import folders
from trainyard_dev.images import packages


@dataclass(frozen=True)
class Release:
    """A package's file that an image installs: its `hash`, and its requirements."""

    hash: str
    requires: tuple[str, ...] = ()


Index = Callable[[Mapping[str, str], bool], dict[str, Release]]


def compile_all(root: Path, index: Index, *, again: bool = False) -> tuple[list[str], list[str]]:
    """Writes the files whose pins differ from the wanted ones; unchanged pins keep their hash.

    Args:
        again: fetch every hash again.

    Returns:
        the written files, and requirements that an image neither has nor leaves out on purpose.
    """
    made = packages.wishes(root, packages.locked(root))
    if made.findings:
        raise TrainyardError(f"{made.findings[0][1]}", where=packages.LIST, hint=made.findings[0][2])
    written, unmet = [], []
    for image, wanted in made.images.items():
        path = root / packages.file_of(root, image)
        text = path.read_text() if path.exists() else f"# What {packages.LIST} says of {image}.\n"
        have = packages.pins(text)
        new = {n: v for n, v in wanted.pins.items() if again or n not in have or have[n][0] != v}
        found = index(new, wanted.source) if new else {}
        unmet += [f"{image}: {line}" for line in _unmet(wanted, found)]
        hashes = {name: found[name].hash if name in found else have[name][1] for name in wanted.pins}
        if {name: (version, hashes[name]) for name, version in wanted.pins.items()} != have:
            path.parent.mkdir(exist_ok=True)  # for a new image
            path.write_text(_text(text, wanted.pins, hashes))
            written.append(packages.file_of(root, image))
    return written, unmet


def outdated(root: Path) -> Iterator[packages.Finding]:
    """Files of images whose pins differ from the list and the lock, and unused entries of the list."""
    files = {file.parent.name for file in folders.each(root, folders.IMAGES, "requirements.txt")}
    if not (root / packages.LIST).exists():
        if files:
            yield packages.LIST, "the file is missing", "list the packages of the images"
        return
    made = packages.wishes(root, packages.locked(root))
    yield from made.findings
    for image in sorted(files - made.images.keys()):
        yield packages.file_of(root, image), f"{packages.LIST} lacks the image", "add it to that file"
    for image, wanted in made.images.items():
        if wanted.pins and image not in files:
            yield packages.file_of(root, image), "the file is missing", "run `bin/trainyard versions wheels`"
            continue
        file = packages.file_of(root, image)
        text = (root / file).read_text() if image in files else ""
        have = {name: version for name, (version, _) in packages.pins(text).items()}
        for name in sorted(have.keys() | wanted.pins.keys()):
            held, due = have.get(name, "absent"), wanted.pins.get(name, "absent")
            if held != due:
                yield file, f"{name} is {held}, must be {due}", "run `bin/trainyard versions wheels`"


def ask(pins: Mapping[str, str], source: bool) -> dict[str, Release]:
    """The files that pip would install into an image; nothing is installed. Raises TrainyardError."""
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.json"
        argv = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--dry-run"]
        # pip evaluates a package's requirements for the Python that runs it, not for the image's.
        argv += ["--ignore-installed", "--ignore-requires-python", "--no-deps", f"--report={report}"]
        if source:
            argv.append("--no-binary=:all:")
        else:  # of a wheel only its metadata are read: CUDA wheels have hundreds of megabytes
            argv += ["--only-binary=:all:", "--use-feature=fast-deps", f"--target={folder}", *tags.options(PYTHON)]
        hint = "check the network, and check that these versions exist for the images' Python"
        run([*argv, *(f"{name}=={version}" for name, version in pins.items())], timeout=600, hint=hint)
        found: dict[str, Release] = {}
        for one in json.loads(report.read_text())["install"]:
            digest = one["download_info"]["archive_info"]["hashes"]["sha256"]
            name = canonicalize_name(one["metadata"]["name"])
            python = one["metadata"].get("requires_python", "")
            if not SpecifierSet(python).contains(MARKERS["python_full_version"]):
                hint = f"images have Python {PYTHON}"
                raise TrainyardError(f"{name} requires Python {python}", where=packages.LIST, hint=hint)
            found[name] = Release(f"sha256:{digest}", tuple(one["metadata"].get("requires_dist", ())))
        return found


def _unmet(wanted: packages.PackagePins, found: Mapping[str, Release]) -> Iterator[str]:
    for name, release in found.items():
        for text in release.requires:
            wish = Requirement(text)
            needed = canonicalize_name(wish.name)
            if needed in wanted.without or (wish.marker and not wish.marker.evaluate(MARKERS)):
                continue
            have = wanted.pins.get(needed, "absent")
            if have == "absent" or not wish.specifier.contains(have, prereleases=True):
                yield f"{name} requires {needed}{wish.specifier}, which is {have}"


def _text(before: str, pins: Mapping[str, str], hashes: Mapping[str, str]) -> str:
    """The file's text, with its leading comment unchanged."""
    lines = before.splitlines()
    head = lines[: next((number for number, line in enumerate(lines) if not line.startswith("#")), len(lines))]
    return "\n".join([*head, *(f"{n}=={v} \\\n    --hash={hashes[n]}" for n, v in pins.items())]) + "\n"
