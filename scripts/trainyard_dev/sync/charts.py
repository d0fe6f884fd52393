"""Writers of the charts' own files: missing files of a new component, versions in Chart.yaml, tags, releases."""

import json
import re
from collections.abc import Callable, Iterator
from typing import Any

from trainyard.components import registry
from trainyard.errors import TrainyardError
from trainyard_dev.images.crane import repository
from trainyard_dev.matrix import results
from trainyard_dev.sync.images import ADD, by_repository
from trainyard_dev.sync.tree import Tree
from trainyard_dev.versions import UMBRELLA, installs

RELEASES = f"charts/{registry.RELEASES}"
PICTURE = "docs/architecture.svg"
CHART = """\
apiVersion: v2
name: {name}
description: {about}
type: application
# The component's own version.
version: {version}
appVersion: v{version}
kubeVersion: "{kube}"
"""
_BOXES = re.compile(r'(?:  <rect class="option" .*\n)+')
_NAMED = re.compile(r"[a-z0-9][\w.-]*(?:/[\w.-]+)+:[\w][\w.-]*")


def components(tree: Tree, raw: dict[str, Any]) -> None:
    """Missing Chart.yaml of our components, and the umbrella's missing dependencies.

    Reports a component without a version.
    """
    if not tree.exists(UMBRELLA):
        return
    meta = tree.data(UMBRELLA)
    known = {one["name"] for one in meta["dependencies"]}
    for entry in registry.load(tree.root / "charts"):
        if entry.name == registry.UMBRELLA:
            continue
        version = raw["components"].get(entry.pin)
        chart = f"charts/{entry.name}/Chart.yaml"
        if entry.is_ours and not tree.exists(chart):
            if version is None:
                tree.leave("versions.yaml", f"components lacks {entry.name}", "add its version")
                continue
            about = json.dumps(entry.about, ensure_ascii=False)
            text = CHART.format(name=entry.name, about=about, version=version, kube=meta["kubeVersion"])
            tree.write(chart, text, f"the chart of {entry.name}")
        if entry.name not in known:
            part = {"name": entry.name, "version": str(version or tree.data(chart)["version"])}
            part |= {"repository": entry.chart["repository"]} if "repository" in entry.chart else {}
            meta["dependencies"].append(part | {"condition": f"{entry.name}.enabled"})
            tree.note(UMBRELLA, f"depends on {entry.name}")
    tree.put(UMBRELLA, meta)


def picture(tree: Tree) -> None:
    """A box for each option, four in a row."""
    if not tree.exists(PICTURE):
        return
    boxes = ""
    for at, name in enumerate(one.name for one in registry.load(tree.root / "charts") if one.optional):
        x, y = 346 + at % 4 * 178, 408 + at // 4 * 46
        boxes += f'  <rect class="option" x="{x}" y="{y}" width="164" height="38" rx="6"/>'
        boxes += f'<text class="part" x="{x + 14}" y="{y + 24}">{name}</text>\n'
    tree.write(PICTURE, _BOXES.sub(boxes, tree.read(PICTURE)), "boxes of options")


def values(tree: Tree, raw: dict[str, Any]) -> None:
    """Names under `images`, pairs of repository and tag, and Volcano's single tag for all of its images."""
    known = by_repository(raw)
    pinned = known | {repo.partition("/")[2]: ref.partition("/")[2] for repo, ref in known.items()}
    volcano = next((ref.rpartition(":")[2] for repo, ref in pinned.items() if repo.startswith("volcanosh/")), "")
    for path in sorted(tree.root.glob("charts/*/values.yaml")) + sorted(tree.root.glob("charts/*/profiles/*.yaml")):
        file = path.relative_to(tree.root).as_posix()
        data = tree.data(file)
        for keys, inside in _texts(data):
            value = wanted = inside[keys[-1]]
            name = ".".join(map(str, keys))
            if "images" in keys[:-1] and ":" in value:
                wanted = pinned.get(repository(value), value)
                if _NAMED.fullmatch(value) and repository(value) not in pinned:
                    tree.leave(file, f"{name} is {value}, which is not in versions.yaml", ADD)
            elif keys[-1] == "image_tag_version":
                wanted = volcano or value
            elif keys[-2:] == ("image", "tag") and (where := inside.get("repository")) is not None:
                wanted = pinned.get(where, value).rpartition(":")[2]
                if where not in pinned:
                    tree.leave(file, f"{name} is from {where}, which is not in versions.yaml", ADD)
            if wanted != value:
                inside[keys[-1]] = wanted
                tree.note(file, f"{name} {wanted}")
        tree.put(file, data)


def _texts(value: Any, path: tuple[str | int, ...] = ()) -> Iterator[tuple[tuple[str | int, ...], Any]]:
    """Every text below a value: its path, and the mapping or list that contains it."""
    inside = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, below in inside:
        if isinstance(below, str):
            yield (*path, key), value
        yield from _texts(below, (*path, key))


def meta(tree: Tree, raw: dict[str, Any], upstream: Callable[[str], str | None]) -> None:
    """`charts/*/Chart.yaml`, and the umbrella's list of its parts.

    A chart whose version equals its appVersion follows the component; any other has our version, and the component's
    as appVersion.

    Args:
        upstream: returns the version of a chart in a Go module; None for any other.
    """
    own = str(raw["trainyard"])
    for path in sorted(tree.root.glob("charts/*/Chart.yaml")):
        name, file = path.parent.name, path.relative_to(tree.root).as_posix()
        data = tree.data(file)
        component = raw["components"].get(name)
        version, app = str(data["version"]), str(data.get("appVersion", ""))
        follows = component is not None and version == app.removeprefix("v")
        _set(tree, file, data, "version", str(component) if follows else own)
        if name == "trainyard":
            _set(tree, file, data, "appVersion", own)
        elif component is not None:
            _set(tree, file, data, "appVersion", ("v" if app.startswith("v") else "") + str(component))
        tree.put(file, data)
    if tree.exists(UMBRELLA):
        _parts(tree, raw, upstream)


def _parts(tree: Tree, raw: dict[str, Any], upstream: Callable[[str], str | None]) -> None:
    data = tree.data(UMBRELLA)
    for part in data.get("dependencies", ()):
        name, held = part["name"], str(part["version"])
        own = f"charts/{name}/Chart.yaml"
        wanted = str(tree.data(own)["version"]) if tree.exists(own) else upstream(name)
        component = raw["components"].get(registry.pin_of(name))
        # A chart that can't be read may have kept its version across a patch release.
        if wanted is None and component and held.split(".")[:2] != component.split(".")[:2]:
            wanted = component
        if wanted is None and component is None:
            tree.leave(UMBRELLA, f"the component {name} has no pin", "add it under components in versions.yaml")
        if wanted is not None:
            _set(tree, UMBRELLA, part, "version", wanted, name)
    tree.put(UMBRELLA, data)


def ceiling(tree: Tree) -> None:
    """The newest Kubernetes on which charts may be installed, from the results of `make matrix`."""
    try:
        wanted = results.ceiling(results.read(tree.root))
    except TrainyardError:
        return  # the page made from the same results reports it
    for path in sorted(tree.root.glob("charts/*/Chart.yaml")) if wanted else ():
        file = path.relative_to(tree.root).as_posix()
        data = tree.data(file)
        if "kubeVersion" in data:
            _set(tree, file, data, "kubeVersion", results.bounded(data["kubeVersion"], wanted))
        tree.put(file, data)


def releases(tree: Tree, raw: dict[str, Any]) -> None:
    """The contents of this release, in `charts/trainyard/releases.yaml`."""
    if not (tree.exists(RELEASES) and tree.exists(UMBRELLA)):
        return
    data = tree.data(RELEASES)
    held = data["releases"].setdefault(str(raw["trainyard"]), {})
    for name, version in installs(tree.root, raw).items():
        _set(tree, RELEASES, held, name, version, name)
    tree.put(RELEASES, data)


def _set(tree: Tree, file: str, data: dict[str, Any], key: str, wanted: str, name: str = "") -> None:
    if str(data.get(key)) != wanted:
        data[key] = wanted
        tree.note(file, f"{name or key} {wanted}")
