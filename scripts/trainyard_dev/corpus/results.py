"""What was found of upstream's examples: a file with names, digests and verdicts, and nothing of what they hold."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from trainyard.errors import TrainyardError
from trainyard_dev.corpus import started
from trainyard_dev.corpus.asking import Said
from trainyard_dev.corpus.judge import Heard, Result
from trainyard_dev.corpus.sources import GROUPS
from trainyard_dev.versions import load

FILE, FILLED = "docs/corpus/results.json", "docs/corpus/filled.json"
Row = dict[str, Any]


def versions() -> dict[str, str]:
    """The pinned version of each group's module."""
    return {group: load().tools[tool].version for group, (tool, _) in GROUPS.items()}


def row(one: Result) -> Row:
    """One example as it is written down."""
    return {
        "file": f"{one.group}/{one.file}",
        "sha256": one.digest,
        "kinds": list(one.kinds),
        "lint": _heard(one.lint),
        "server": _said(one.server),
        "edits": [one.edits, one.by_hand],
        "again": one.again,
        "lint after": _heard(one.lint_after),
        "server after": _said(one.server_after),
        "run": ran(one),
    }


def ran(one: Result) -> str:
    """The check that runs it on the cluster, or why none does."""
    refused = one.lint_after.refuses or one.server_after.refusals
    return started.run(one.group, one.file, refused, one.lint_after.fails)


def result(row: Row) -> Result:
    """The other way. Raises KeyError for a row of another shape."""
    group, _, file = row["file"].partition("/")
    heard = [Heard(tuple(row[key]["refuses"]), tuple(row[key]["fails"])) for key in ("lint", "lint after")]
    said = [Said(tuple(row[key]["refuses"]), tuple(row[key]["lacks"])) for key in ("server", "server after")]
    edits, by_hand = row["edits"]
    kinds, again = tuple(row["kinds"]), row["again"]
    return Result(group, file, row["sha256"], kinds, heard[0], said[0], edits, by_hand, heard[1], said[1], again)


def read(root: Path, name: str = FILE) -> tuple[dict[str, str], list[Result]]:
    """Versions of the modules, and every example, of `FILE` or `FILLED`, where the server fills in.

    Raises:
        TrainyardError: the file is not there or can't be read.
    """
    try:
        raw = json.loads((root / name).read_text())
        return raw["modules"], [result(row) for row in raw["files"]]
    except (OSError, ValueError, KeyError, TypeError) as error:
        what = f"the results can't be read: {error}"
        raise TrainyardError(what, where=name, hint="run `bin/trainyard corpus run`") from None


def write(root: Path, results: list[Result], modules: dict[str, str], name: str = FILE) -> None:
    """One line for each example, so that a difference is a line."""
    lines = ",\n".join(f"  {json.dumps(row(one))}" for one in results)
    file = root / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(f'{{"modules": {json.dumps(modules)},\n "files": [\n{lines}\n]}}\n')


def _heard(one: Heard) -> Row:
    return {"refuses": list(one.refuses), "fails": list(one.fails)}


def _said(one: Said) -> Row:
    return {"refuses": list(one.refusals), "lacks": list(one.lacks)}
