"""Sources of the examples: the modules that versions.yaml pins, read when needed."""

import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from trainyard.errors import UsageError
from trainyard.yaml_lines import Document, documents
from trainyard_dev import tools

# Name of a group, its tool set, and the folder of the set's main module.
GROUPS = {
    "training-operator": ("training-operator", "examples"),
    "volcano": ("volcano", "example"),
    "argo": ("argo", "examples"),
}


@dataclass(frozen=True)
class Example:
    """An example file of upstream's. `documents` is empty where it is not YAML."""

    group: str
    name: str
    digest: str
    text: str
    documents: tuple[Document, ...]

    def objects(self) -> list[dict[str, Any]]:
        """The file's objects, lists expanded; parts shared by YAML anchors stay shared."""
        found = []
        for one in self.documents:
            if isinstance(one.data, dict) and str(one.data.get("kind", "")).endswith("List"):
                found += [item for item in one.data.get("items") or [] if isinstance(item, dict)]
            elif isinstance(one.data, dict):
                found.append(one.data)
        return found


def examples(group: str) -> list[Example]:
    """Every YAML file of a group, by name. Raises TrainyardError when the module can't be downloaded."""
    tool, folder = GROUPS[group]
    root = tools.module_dir(tool) / folder
    return [_example(group, file, root) for file in sorted([*root.rglob("*.yaml"), *root.rglob("*.yml")])]


def _example(group: str, file: Path, root: Path) -> Example:
    raw = file.read_bytes()
    text, name = raw.decode(errors="replace"), file.relative_to(root).as_posix()
    try:
        found = tuple(documents(text, name))
    except UsageError:
        found = ()
    return Example(group, name, hashlib.sha256(raw).hexdigest(), text, found)
