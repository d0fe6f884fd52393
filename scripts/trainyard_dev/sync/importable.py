"""Packages that images can import for members' code, from the package list: scripts/trainyard/kinds/images.yaml.

The check train.imports imports all of them.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from trainyard_dev.images import packages

FILE = "scripts/trainyard/kinds/images.yaml"
OURS = "mnist"  # images/trainer
HEAD = f"""\
# What each image of members' code can import, with its line of requirements.txt; none where Debian brings it.
# Written by `bin/trainyard versions sync` from {packages.LIST}.
"""


def render(root: Path) -> str:
    """The file's text. Raises KeyError for a tree whose lists contradict each other."""
    raw = yaml.load((root / packages.LIST).read_text(), yaml.BaseLoader)
    parents = {
        name: image.get("parent", "")
        for name, image in yaml.safe_load((root / "versions.yaml").read_text())["images"].items()
    }
    wanted = packages.wishes(root, packages.locked(root)).images
    names = raw.get("modules", {})
    made: dict[str, Any] = {}
    for image in (name for name, spec in raw["images"].items() if "runs" in spec):
        runs = raw["images"][image]["runs"]
        modules, lacks, at = {OURS: ""} if runs else {}, list(raw["images"][image].get("lacks", ())), image
        while at:
            own = dict.fromkeys(raw["images"][at].get("system", ()), "")
            for package, version in wanted[at].pins.items():
                own |= dict.fromkeys(_modules(names, package), f"{package}=={version}")
            modules = {**own, **modules}
            at = parents.get(at, "")
        made[image] = {"key": packages.key(image), "runs": runs}
        made[image] |= {"python": raw["images"][image]["python"]} if "python" in raw["images"][image] else {}
        made[image] |= {"cuda": True} if image.endswith(packages.CUDA) else {}
        made[image] |= {"lacks": lacks} if lacks else {}
        made[image]["modules"] = dict(sorted(modules.items(), key=lambda one: one[0].lower()))
    return HEAD + yaml.safe_dump(made, sort_keys=False, width=120, default_flow_style=None)


def _modules(names: Mapping[str, list[str]], package: str) -> list[str]:
    """A package's modules: from its own entry, else from one for all with the same prefix, else its name."""
    alike = (found for name, found in names.items() if name.endswith("*") and package.startswith(name[:-1]))
    return names[package] if package in names else next(alike, [package.replace("-", "_")])
