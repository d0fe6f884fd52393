"""The origin of each tracked file, as listed in `files.yaml`: generated, recorded, or else written by hand."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import yaml

from trainyard.errors import TrainyardError
from trainyard.shell import run
from trainyard_dev.images.packages import Finding

FILE = "files.yaml"
GENERATED, RECORDED, HAND_WRITTEN = "generated", "recorded", "hand-written"
LONGEST = 500  # lines of a generated or recorded file, unless its entry explains why it is longer


@dataclass(frozen=True)
class Entry:
    """Files of one class, as patterns of paths, and the command that makes them; `long`: why they may be long."""

    sort: str
    command: str
    files: tuple[str, ...]
    long: str = ""

    def has(self, file: str) -> bool:
        """Whether the path is one of these files."""
        return any(fnmatchcase(file, pattern) for pattern in self.files)


def read(root: Path) -> dict[str, Any]:
    """Reads `files.yaml` as data. Raises TrainyardError."""
    try:
        found: dict[str, Any] = yaml.safe_load((root / FILE).read_text())
    except (OSError, yaml.YAMLError) as error:
        raise TrainyardError(f"the file can't be read ({error})", where=FILE) from None
    return found


def entries(raw: Mapping[str, Any]) -> list[Entry]:
    """The list of files that are not written by hand."""
    return [Entry(sort, one["command"], tuple(one["files"]), one.get("long", ""))
            for sort in (GENERATED, RECORDED) for one in raw[sort]]  # fmt: skip


def of(listed: Sequence[Entry], file: str) -> str:
    """The class of a path."""
    return next((one.sort for one in listed if one.has(file)), HAND_WRITTEN)


def tracked(root: Path) -> dict[str, bytes]:
    """Reads every file that git tracks and the folder has. Raises TrainyardError."""
    names = run(["git", "ls-files", "-z"], cwd=root).stdout.split("\0")
    return {name: (root / name).read_bytes() for name in names if name and (root / name).is_file()}


def differences(listed: Sequence[Entry], texts: Mapping[str, bytes], made: Collection[str]) -> Iterator[Finding]:
    """Differences of list and tree: patterns without a file, files in two entries, generated files, and length.

    Args:
        made: the files that `versions sync` generates and compares.
    """
    for one in listed:
        for pattern in one.files:
            if not any(fnmatchcase(file, pattern) for file in texts):
                yield FILE, f"no tracked file matches {pattern}", "remove it"
    for file, text in texts.items():
        having = [one for one in listed if one.has(file)]
        if len(having) > 1:
            yield FILE, f"{file} is listed twice", "list it once"
        sort, lines = of(listed, file), text.count(b"\n")
        if sort == GENERATED and file not in made:
            yield file, f"{FILE} lists it as generated, but no command generates it", "remove or move the entry"
        if sort != GENERATED and file in made:
            yield file, "`bin/trainyard versions sync` generates it", f"list it in {FILE} as generated"
        if having and lines > LONGEST and not having[0].long:
            hint = "let git ignore it and generate it when needed, or shorten it"
            yield file, f"{lines:,} {sort} lines, more than {LONGEST}", hint
