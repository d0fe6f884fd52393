"""Collects wheels for the images' Python: from requirements with pip, or from a folder."""

import hashlib
import json
import re
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from trainyard.errors import TrainyardError, UsageError
from trainyard.training.wheels import tags
from trainyard_agent.runs.requirements import RequirementError, canonical, read

PIP_S = 3600.0


@dataclass(frozen=True)
class LocalWheel:
    """A wheel on this machine."""

    path: Path
    wheel: tags.Wheel
    sha256: str

    @property
    def size(self) -> int:
        """Size in bytes."""
        return self.path.stat().st_size


def folder(source: Path, python: str) -> list[LocalWheel]:
    """All wheels of a folder. Raises UsageError if there is none, or one is for another Python or platform."""
    found = []
    for path in sorted(source.glob("*.whl")):
        wheel = tags.of(path.name)
        if wheel is None:
            raise UsageError("invalid name of a wheel", where=str(path), hint="use the file name that pip gave it")
        if why := tags.misfit(wheel, python):
            hint = f"remove the file, or have `pip download --python-version {python}` choose another"
            raise UsageError(f"no run could install it: {why}", where=str(path), hint=hint)
        found.append(LocalWheel(path, wheel, _digest(path)))
    if not found:
        raise UsageError("the folder contains no wheel", where=str(source), hint="choose a folder with *.whl files")
    return found


def requirements(
    source: Path, target: Path, python: str, without: Sequence[str], pip: Sequence[str] = ()
) -> list[LocalWheel]:
    """Downloads requirements with their dependencies to `target`; a line with hashes only accepts matching files.

    Args:
        without: packages that every image has; neither they nor packages that only they need are downloaded.
        pip: further arguments for pip, such as --index-url.

    Raises:
        UsageError: a line can't be installed in a pod.
        TrainyardError: pip failed.
    """
    try:
        lines = read(lambda one: (source.parent / one).read_text(encoding="utf-8"), source.name)
    except RequirementError as error:
        raise UsageError(error.what, where=error.where, hint=error.hint) from None
    if not lines.lines:
        raise UsageError("the file names no package", where=str(source), hint="write one per line")
    wanted = _resolved(source, target, python, pip)
    left = {canonical(name) for name in without}
    pins = [wanted[name] for name in _closure([line.name for line in lines.lines], wanted, left)]
    if not pins:
        raise UsageError("nothing is left to send", where=str(source), hint="remove a --without")
    pinned = target / "pinned.txt"
    pinned.write_text("".join(f"{one.name}=={one.version} --hash=sha256:{one.sha256}\n" for one in pins))
    _pip(["download", "--no-deps", "--require-hashes", f"--dest={target}", f"--requirement={pinned}"], python, pip)
    return folder(target, python)


@dataclass(frozen=True)
class Pin:
    """A package that pip chose. `needs`: names of its dependencies."""

    name: str
    version: str
    sha256: str
    needs: tuple[str, ...]


def _resolved(source: Path, target: Path, python: str, pip: Sequence[str]) -> dict[str, Pin]:
    """All packages that pip would install, by name; downloads only metadata if the index supports it."""
    report = target / "report.json"
    words = ["install", "--dry-run", "--ignore-installed", f"--target={target / 'none'}", f"--report={report}"]
    words.append(f"--requirement={source}")
    try:
        _pip([*words, "--use-feature=fast-deps"], python, pip)
    except TrainyardError:
        _pip(words, python, pip)
    found: dict[str, Pin] = {}
    for one in json.loads(report.read_text())["install"]:
        meta, name = one["metadata"], canonical(one["metadata"]["name"])
        digest = one["download_info"]["archive_info"]["hashes"]["sha256"]
        needs = tuple(canonical(re.split(r"[^A-Za-z0-9._-]", text)[0]) for text in meta.get("requires_dist", ()))
        found[name] = Pin(name, meta["version"], digest, needs)
    return found


def _closure(names: Sequence[str], pins: dict[str, Pin], left: set[str]) -> list[str]:
    """The names and their dependencies among the pins, except those in `left` and what only they need."""
    found: set[str] = set()
    todo = list(names)
    while todo:
        name = todo.pop()
        if name not in found and name not in left and name in pins:
            found.add(name)
            todo += pins[name].needs
    return sorted(found)


def _pip(words: Sequence[str], python: str, more: Sequence[str]) -> None:
    verb, *rest = words
    argv = [sys.executable, "-m", "pip", verb, "--quiet", "--disable-pip-version-check", "--no-input"]
    argv += ["--only-binary=:all:", *tags.options(python), *more, *rest]
    try:
        done: Any = subprocess.run(argv, capture_output=True, text=True, timeout=PIP_S)
    except subprocess.TimeoutExpired:
        raise TrainyardError("pip did not end within an hour", hint="pass fewer requirements at once") from None
    if done.returncode:
        said = [line for line in done.stderr.splitlines() if line.startswith("ERROR")] or done.stderr.splitlines()
        what = said[0].removeprefix("ERROR: ") if said else f"pip ended with code {done.returncode}"
        if "No module named pip" in done.stderr:
            raise TrainyardError(what, hint=f"install it: {sys.executable} -m ensurepip")
        hint = f"use a version that has a wheel for Python {python}, or send wheels of your own from a folder"
        raise TrainyardError(f"pip: {what}", hint=hint)


def _digest(path: Path) -> str:
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
