"""Applies `charts/<component>/patches/*.patch` to the copy of an upstream chart, in the order of their names.

`patches/*.patch` of a tool set are applied to the copy of a module's source in the same way. They are plain unified
diffs, so that `git apply` and `patch -p1` accept them, too. Here the rules are stricter: every hunk must be found as
it is, on whole lines, exactly once, at any position. So no change is silently lost or misplaced
when upstream releases another version. A patched file has Unix line ends, whatever upstream's.
"""

import re
from dataclasses import dataclass, field
from pathlib import Path

from trainyard.errors import TrainyardError
from trainyard.paths import ROOT

_HUNK = re.compile(r"^@@ -(\d+)(?:,(\d+))? \+\d+(?:,(\d+))? @@")


@dataclass
class Hunk:
    """Lines that must be present and their replacement, line ends included; `line` is their position upstream."""

    file: str
    line: int
    old: list[str] = field(default_factory=list)
    new: list[str] = field(default_factory=list)


def of(component: str) -> Path:
    """Return the folder of a component's patches."""
    return ROOT / "charts" / component / "patches"


def apply_all(folder: Path, copy: Path, what: str = "") -> None:
    """Apply all patches of a folder to a copy of upstream's files. Raises TrainyardError when one no longer applies."""
    for patch in sorted(folder.glob("*.patch")):
        apply(patch, copy, what)


def apply(patch: Path, chart: Path, what: str = "") -> None:
    """Apply one patch to the copy of upstream's files in `chart`.

    Args:
        what: name of what it changes, for messages; "": the chart that the patch's folder names.

    Raises:
        TrainyardError: the file is no patch of this kind, or a hunk isn't found exactly once.
    """
    text = patch.read_text()
    what = what or f"the {patch.parents[1].name} chart"
    hunks = _parsed(text, patch)
    about = text.partition("\n")[0].rstrip(".")
    for hunk in hunks:
        target = chart / hunk.file
        if not target.is_file():
            raise _stale(patch, what, f"{hunk.file} no longer exists", about)
        lines = target.read_text().splitlines(keepends=True)
        size = len(hunk.old)
        found = [at for at in range(len(lines) - size + 1) if lines[at : at + size] == hunk.old]
        if len(found) != 1:
            lost = (
                f"the lines that it changes in {hunk.file} (upstream's line {hunk.line}) are there {len(found)} times"
            )
            raise _stale(patch, what, lost, about)
        lines[found[0] : found[0] + size] = hunk.new
        target.write_text("".join(lines))


def _where(patch: Path) -> str:
    """The patch's path in the tree."""
    if patch.is_relative_to(ROOT):
        return str(patch.relative_to(ROOT))
    return "/".join(("charts", *patch.parts[-3:]))


def _stale(patch: Path, what: str, lost: str, about: str) -> TrainyardError:
    return TrainyardError(
        f"{what} changed: {lost}",
        where=_where(patch),
        hint=f'check if "{about}" is still needed, then recreate the patch (charts/README.md)',
    )


def _parsed(text: str, patch: Path) -> list[Hunk]:
    hunks: list[Hunk] = []
    file, left = "", (0, 0)
    for number, line in enumerate(text.splitlines(keepends=True), 1):
        sign, rest = line[:1], line[1:]
        if left != (0, 0):
            if sign not in (" ", "-", "+", "\n"):
                raise _broken(patch, number, "a hunk is shorter than stated")
            rest = "\n" if sign == "\n" else rest  # an editor removed the blank of an empty line
            if sign != "+":
                hunks[-1].old.append(rest)
            if sign != "-":
                hunks[-1].new.append(rest)
            left = (left[0] - (sign != "+"), left[1] - (sign != "-"))
        elif line.startswith("+++ "):
            file = line[4:].split("\t")[0].strip().partition("/")[2]
        elif match := _HUNK.match(line):
            if not file:
                raise _broken(patch, number, "a hunk without a file")
            hunks.append(Hunk(file, int(match[1])))
            left = (int(match[2] or 1), int(match[3] or 1))
        elif hunks and (sign in ("+", " ", "\\") or (sign == "-" and not line.startswith("--- "))):
            raise _broken(patch, number, "a line outside hunks")
    if left != (0, 0) or not hunks:
        raise _broken(patch, len(text.splitlines()), "a hunk is shorter than stated" if hunks else "no hunk found")
    return hunks


def _broken(patch: Path, line: int, what: str) -> TrainyardError:
    return TrainyardError(
        what, where=f"{_where(patch)}, line {line}", hint="recreate it with `diff -u` (charts/README.md)"
    )
