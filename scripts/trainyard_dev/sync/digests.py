"""`trainyard versions digests`: digests of upstream's images, from registries, written into versions.yaml."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from trainyard.errors import TrainyardError
from trainyard_dev.sync.images import upstream
from trainyard_dev.sync.tree import Tree
from trainyard_dev.versions import FILE, UNPROVED, read

# Reference -> digest, "" if the registry has none; raises TrainyardError if no registry answers.
Ask = Callable[[str], str]


@dataclass(frozen=True)
class DigestCheck:
    """The result for one image: `said` is for the user, `bad` if the pinned digest differs."""

    name: str
    said: str
    bad: bool = False


def fill(root: Path, ask: Ask) -> list[DigestCheck]:
    """Queries every image; writes missing digests, and never replaces an existing one.

    Raises:
        TrainyardError: versions.yaml can't be read.
    """
    raw = read(root)
    tree = Tree(root)
    data = tree.data(FILE)
    found = [
        _one(name, ref, raw["published"][name], data["published"], ask) for name, ref in sorted(upstream(raw).items())
    ]
    tree.put(FILE, data)
    tree.save()
    return found


def _one(name: str, ref: str, spec: dict[str, Any], published: dict[str, Any], ask: Ask) -> DigestCheck:
    try:
        found = ask(ref)
    except TrainyardError as error:
        return DigestCheck(name, f"not queried: {error.what}")
    if not found:
        return DigestCheck(name, f"the registry has no {ref}", bad=True)
    have, today = str(spec["digest"]), f"{ref.rpartition(':')[2]}@{found}"
    if have == UNPROVED:
        published[name]["digest"] = today
        return DigestCheck(name, f"written: {today}")
    if have == today:
        return DigestCheck(name, "as pinned")
    return DigestCheck(name, f"it is now {today}, but {have} is pinned", bad=True)
