"""What was found of upstream's examples: a file of one tree's verdicts, and nothing of what they hold."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from trainyard.errors import TrainyardError
from trainyard.paths import OUT, ROOT
from trainyard_dev import recorded
from trainyard_dev.corpus import started
from trainyard_dev.corpus.asking import Said
from trainyard_dev.corpus.judge import Heard, Result
from trainyard_dev.corpus.sources import GROUPS
from trainyard_dev.versions import load

FILE, FILLED = OUT / "corpus" / "results.json", OUT / "corpus" / "filled.json"
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


def read(file: Path | None = None) -> tuple[str, list[Result]]:
    """Which tree and modules it was, and every example, of `FILE`, or of `FILLED`, where the server fills in.

    Raises:
        TrainyardError: the file is not there or can't be read.
    """
    try:
        raw = json.loads((file or FILE).read_text())
        return raw["of"], [result(row) for row in raw["files"]]
    except (OSError, ValueError, KeyError, TypeError) as error:
        what = f"there are no results of the corpus: {error}"
        raise TrainyardError(what, hint="run `bin/trainyard corpus run`") from None


def write(results: list[Result], file: Path = FILE) -> None:
    """One line for each example."""
    lines = ",\n".join(f"  {json.dumps(row(one))}" for one in results)
    modules = ", ".join(f"{group} {version}" for group, version in versions().items())
    of = f"commit {recorded.commit(ROOT, ())}; modules: {modules}"
    recorded.write(file, f'{{"of": {json.dumps(of)},\n "files": [\n{lines}\n]}}\n')


def _heard(one: Heard) -> Row:
    return {"refuses": list(one.refuses), "fails": list(one.fails)}


def _said(one: Said) -> Row:
    return {"refuses": list(one.refusals), "lacks": list(one.lacks)}
