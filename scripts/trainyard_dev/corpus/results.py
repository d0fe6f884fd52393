"""Results of upstream's examples: a file of one tree's verdicts, without the examples' content."""

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

from trainyard.errors import TrainyardError
from trainyard.paths import OUT, ROOT
from trainyard_dev import recorded
from trainyard_dev.corpus import started
from trainyard_dev.corpus.asking import ServerVerdict
from trainyard_dev.corpus.judge import LintVerdict, Result
from trainyard_dev.corpus.sources import GROUPS
from trainyard_dev.versions import load

FILE, FILLED = OUT / "corpus" / "results.json", OUT / "corpus" / "filled.json"


def versions() -> dict[str, str]:
    """The pinned version of each group's module."""
    return {group: load().tools[tool].version for group, (tool, _) in GROUPS.items()}


def ran(one: Result) -> str:
    """The check that runs the example on the cluster, or why none does."""
    refused = one.lint_after.refuses or one.server_after.refusals
    return started.run(one.group, one.file, refused, one.lint_after.fails)


def _result(row: dict[str, Any]) -> Result:
    """Parses a row of the file. Raises KeyError or TypeError for a row of another shape."""
    held: dict[str, Any] = {"kinds": tuple(row["kinds"])}
    for name in ("lint", "server", "lint_after", "server_after"):
        kind = LintVerdict if name.startswith("lint") else ServerVerdict
        held[name] = kind(**{key: tuple(codes) for key, codes in row[name].items()})
    return Result(**row | held)


def read(file: Path | None = None) -> tuple[str, list[Result]]:
    """Reads tree, modules and every example from `FILE`, or from `FILLED`, where the server fills in.

    Raises:
        TrainyardError: the file is missing or can't be read.
    """
    try:
        raw = json.loads((file or FILE).read_text())
        return raw["of"], [_result(row) for row in raw["files"]]
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        what = f"no results of the corpus found: {error}"
        raise TrainyardError(what, hint="run `bin/trainyard corpus run`") from None


def write(results: list[Result], file: Path = FILE) -> None:
    """Writes one line for each example."""
    lines = ",\n".join(f"  {json.dumps(asdict(one))}" for one in results)
    modules = ", ".join(f"{group} {version}" for group, version in versions().items())
    of = f"commit {recorded.commit(ROOT, ())}; modules: {modules}"
    recorded.write(file, f'{{"of": {json.dumps(of)},\n "files": [\n{lines}\n]}}\n')
