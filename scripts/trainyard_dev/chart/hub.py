"""What Artifact Hub and `helm show` read from the packaged chart: icon, changes, images, and a page of all values."""

import base64
import re
from collections.abc import Iterator
from pathlib import Path

import yaml

from trainyard.contract.model import OWN
from trainyard.paths import ROOT
from trainyard_dev.chart import images, package, parts, reference
from trainyard_dev.images.crane import repository

_LINK = re.compile(r"\[([^][]*)\]\([\w/.:-]+(?:#[^)]*)?\)")  # to a page, not to a heading of the same page


def describe(chart: Path, home: str = "", profile: str = "on-prem") -> list[str]:
    """Completes Chart.yaml of an assembled chart, and writes its README.md; returns the profile's images, listed there.

    Args:
        home: the project's address, where its source is, too.
    """
    file = chart / "Chart.yaml"
    meta = yaml.safe_load(file.read_text())
    icon = base64.b64encode((parts.UMBRELLA / "icon.svg").read_bytes()).decode()
    objects = package.render(profile, chart, [f"global.ownImageRegistry={OWN}", *images.ANY_TEAM])
    listed = sorted(images.references(objects))
    meta["icon"] = f"data:image/svg+xml;base64,{icon}"
    meta |= {"home": home, "sources": [home]} if home else {}
    meta["annotations"] = meta.get("annotations", {}) | {
        "artifacthub.io/changes": _text([{"kind": kind, "description": what} for kind, what in changes()]),
        "artifacthub.io/images": _text([{"name": repository(ref).rpartition("/")[2], "image": ref} for ref in listed]),
    }
    file.write_text(yaml.safe_dump(meta, sort_keys=False))
    (chart / "README.md").write_text(f"{(parts.UMBRELLA / 'README.md').read_text()}\n{_values()}")
    return listed


def changes(root: Path = ROOT) -> Iterator[tuple[str, str]]:
    """Kind and text of each change since the last release, as CHANGELOG.md lists them."""
    newest = (root / "CHANGELOG.md").read_text().split("\n## ")[1]
    for section in newest.split("\n### ")[1:]:
        title, _, rest = section.partition("\n")
        for entry in re.split(r"^- ", rest, flags=re.MULTILINE)[1:]:
            yield title.lower(), " ".join(_LINK.sub(r"\1", entry).split())


def _text(entries: list[dict[str, str]]) -> str:
    return yaml.safe_dump(entries, sort_keys=False, width=200)


def _values() -> str:
    """The page of all values, one heading lower, without links to pages that the chart lacks."""
    return re.sub(r"^#", "##", _LINK.sub(r"\1", reference.PAGE.read_text()), flags=re.MULTILINE)
