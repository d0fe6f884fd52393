"""Hints for lint and `train` if a request differs much from the usage of the last runs.

They need at most one request to the API server, and are never an error.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

from trainyard.errors import TrainyardError
from trainyard.rightsize import files, judged, proposal, quantity, usage
from trainyard.training import detect

if TYPE_CHECKING:
    from trainyard.kube import Kube
    from trainyard.rightsize.usage import Usage

CODE = "TY411"


def known(kube: Kube, namespace: str) -> Usage | None:
    """Published usage of a team; None if there is none, or it can't be read."""
    try:
        return usage.read(kube, namespace)
    except TrainyardError:
        return None


def read(name: str) -> files.File | None:
    """A file with jobs' requests; None for any other: its errors are reported elsewhere."""
    try:
        text = Path(name).read_text(encoding="utf-8")
        return files.read(name, text, detect.job_name(Path(name).parent))
    except (OSError, UnicodeDecodeError, TrainyardError):
        return None


def of_file(file: files.File, seen: Usage, namespace: str) -> Iterator[tuple[int, str, str]]:
    """(line, difference, hint) for each place of a file with requests far from the usage."""
    for one in judged.of_file(file, seen, namespace, proposal.MARGIN, proposal.RUNS):
        for what in _far(one):
            yield one.line, what, f"see `trainyard rightsize {file.name}`"


def of_job(manifest: Mapping[str, Any], seen: Usage) -> list[str]:
    """Hints for a job that is about to be sent."""
    name = usage.base(manifest["metadata"]["name"])
    try:
        file = files.read(name, yaml.safe_dump(dict(manifest)))
    except TrainyardError:
        return []
    found = of_file(file, seen, str(manifest["metadata"].get("namespace") or ""))
    return list(dict.fromkeys(f"{what}; {hint}" for _, what, hint in found))


def _far(one: judged.Judged) -> Iterator[str]:
    for resource in judged.RESOURCES:
        asked, new = one.request(one.asked, resource), one.request(one.new, resource)
        if asked is None or new is None:
            continue
        if where := proposal.far(resource, asked, new):
            used = one.new.why.get(resource, "")
            less = "more than twice" if where == "above" else "less than"
            yield (
                f"{resource} {quantity.text(resource, asked)} of {one.title} is {less} what the job needs: "
                f"{used}; {quantity.text(resource, new)} would do"
            )
