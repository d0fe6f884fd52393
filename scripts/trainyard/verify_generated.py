"""Files that are made from others, and GitOps examples that name the chart's version; part of `trainyard verify`."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from trainyard.chart import reference

# (file, what is wrong, what to change)
Finding = tuple[str, str, str]

GITOPS = "manifests/gitops"
# Keys by which Argo CD and Flux name a chart's version or a tag of the repository.
_VERSION = re.compile(
    r"^\s*(?:-\s+)?(?:targetRevision|version|tag|semver):\s*[\"']?v?(\d+\.\d+\.\d+)[\"']?\s*(?:#.*)?$"
)


def differences(root: Path, raw: dict[str, Any]) -> Iterator[Finding]:
    """Everything generated that is out of date, and every example with another version than `versions.yaml`."""
    yield from _values(root)
    for file in sorted((root / GITOPS).rglob("*.yaml")):
        for number, line in enumerate(file.read_text().splitlines(), 1):
            if (match := _VERSION.match(line)) and match[1] != raw["trainyard"]:
                where = f"{file.relative_to(root).as_posix()}:{number}"
                yield where, f"the chart's version is {match[1]}", f"write {raw['trainyard']}"


def _values(root: Path) -> Iterator[Finding]:
    if not (root / "charts" / "trainyard" / "values.schema.json").exists():
        return  # a tree without the chart
    page = root / "docs" / "values.md"
    if not page.exists() or page.read_text() != reference.render():
        yield "docs/values.md", "the page is out of date", "run `bin/trainyard chart values-reference`"
