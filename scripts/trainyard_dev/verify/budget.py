"""The tree's budget: four figures compared with the ceilings of `files.yaml`."""

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from trainyard.errors import TrainyardError
from trainyard.shell import run
from trainyard_dev.images.packages import Finding
from trainyard_dev.verify.classes import FILE, HAND_WRITTEN, Entry, of

PER_LINE = 45  # bytes that an allowance of one line adds to the ceiling of bytes
BYTES, PYTHON, BY_HAND, TRACKED = "hand-written bytes", "Python lines", "hand-written lines", "tracked lines"
_PYTHON = re.compile(rb"#!.*\bpython")
_ALLOWED = re.compile(r"allowance: \S|docs/decisions/\d{4}-[a-z0-9-]+\.md$")
HINT = f"remove code, or use a library; {FILE} states what may raise a ceiling"


@dataclass(frozen=True)
class Figure:
    """One count of the tree and its ceiling."""

    name: str
    have: int
    most: int

    def __str__(self) -> str:
        return f"{self.name} {self.have:,} of {self.most:,} ({self.most - self.have:,} left)"


def figures(raw: Mapping[str, Any], listed: Sequence[Entry], texts: Mapping[str, bytes]) -> list[Figure]:
    """The four figures of the tracked files, with all raises included."""
    have: Counter[str] = Counter()
    for file, text in texts.items():
        for name in _counted(listed, file, text):
            have[name] += len(text) if name == BYTES else text.count(b"\n")
    raised = sum(one["lines"] for one in raw["raised"])
    return [Figure(name, have[name], spec["most"] + raised * (PER_LINE if name == BYTES else 1))
            for name, spec in raw["ceilings"].items()]  # fmt: skip


def _counted(listed: Sequence[Entry], file: str, text: bytes) -> Iterator[str]:
    yield TRACKED
    if of(listed, file) == HAND_WRITTEN:
        yield from (BY_HAND, BYTES)
    if file.endswith(".py") or _PYTHON.match(text):
        yield PYTHON


def differences(root: Path, raw: Mapping[str, Any], found: Sequence[Figure], listed: Sequence[Entry],
                texts: Mapping[str, bytes]) -> Iterator[Finding]:  # fmt: skip
    """Raises without an allowance, and figures above their ceilings with the folders that grew most."""
    for one in raw["raised"]:
        by = str(one.get("by", ""))
        if not _ALLOWED.match(by) or (by.startswith("docs/") and not (root / by).is_file()):
            yield FILE, f"`{by}` does not raise a ceiling", "name an issue's allowance, or a page in docs/decisions/"
    for figure in found:
        if figure.have > figure.most:
            what = f"{figure.name}: {figure.have:,}, {figure.have - figure.most:,} above the ceiling of {figure.most:,}"
            yield FILE, what + growth(root, figure.name, listed, texts), HINT


def growth(root: Path, name: str, listed: Sequence[Entry], texts: Mapping[str, bytes], most: int = 3) -> str:
    """The folders that grew most in a figure's files, in lines; empty where git has no base to compare with."""
    base = _base(root)
    folders: Counter[str] = Counter()
    diff = run(["git", "diff", "--numstat", "--no-renames", base], cwd=root).stdout if base else ""
    for added, removed, file in (line.split("\t") for line in diff.splitlines()):
        if added != "-" and name in _counted(listed, file, texts.get(file, b"")):
            folders["/".join(file.split("/")[:-1][:3]) or "."] += int(added) - int(removed)
    grew = ", ".join(f"{folder} +{lines:,}" for folder, lines in folders.most_common(most) if lines > 0)
    return f"; since {base[:8]} grew most: {grew}" if grew else ""


def _base(root: Path) -> str:
    """The commit at which this branch left the main one; on main itself, the last change of the ceilings."""
    head = _git(root, "rev-parse", "HEAD")
    bases = (_git(root, "merge-base", "HEAD", branch) for branch in ("origin/HEAD", "origin/main", "main"))
    return next((base for base in bases if base not in ("", head)), _git(root, "log", "-1", "--format=%H", "--", FILE))


def _git(root: Path, *words: str) -> str:
    try:
        return run(["git", *words], cwd=root).stdout.strip()
    except TrainyardError:
        return ""
