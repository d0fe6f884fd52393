"""Writers of the charts' own files: versions in Chart.yaml, tags in values, the list of releases."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from trainyard.components.registry import pin_of
from trainyard.errors import TrainyardError
from trainyard_dev.matrix import results
from trainyard_dev.sync.images import ADD, by_repository, repository
from trainyard_dev.sync.tree import Scalars, Tree
from trainyard_dev.versions import UMBRELLA, installs

RELEASES = "components/releases.yaml"
_NAMED = re.compile(r"[a-z0-9][\w.-]*(?:/[\w.-]+)+:[\w][\w.-]*")


def values(tree: Tree, raw: dict[str, Any]) -> None:
    """Names under `images`, pairs of repository and tag, and Volcano's one tag for all of its images."""
    known = by_repository(raw)
    pinned = known | {repo.partition("/")[2]: ref.partition("/")[2] for repo, ref in known.items()}
    volcano = next((ref.rpartition(":")[2] for repo, ref in pinned.items() if repo.startswith("volcanosh/")), "")
    for path in sorted(tree.root.glob("charts/*/values.yaml")) + sorted(tree.root.glob("charts/*/profiles/*.yaml")):
        file = path.relative_to(tree.root).as_posix()
        scalars = Scalars(tree.read(file))
        found = scalars.values()
        for keys, value in found.items():
            wanted, name = value, ".".join(map(str, keys))
            if "images" in keys[:-1] and ":" in value:
                wanted = pinned.get(repository(value), value)
                if _NAMED.fullmatch(value) and repository(value) not in pinned:
                    tree.leave(file, f"{name} is {value}, which is not in versions.yaml", ADD)
            elif keys[-1] == "image_tag_version":
                wanted = volcano or value
            elif keys[-2:] == ("image", "tag") and (where := found.get((*keys[:-1], "repository"))) is not None:
                wanted = pinned.get(where, value).rpartition(":")[2]
                if where not in pinned:
                    tree.leave(file, f"{name} is of {where}, which is not in versions.yaml", ADD)
            if scalars.set(keys, wanted):
                tree.note(file, f"{name} {wanted}")
        tree.write(file, scalars.text())


def meta(tree: Tree, raw: dict[str, Any], upstream: Callable[[str], str | None]) -> None:
    """`charts/*/Chart.yaml`, and the umbrella's list of its parts.

    A chart whose version is its appVersion's number follows the component; any other has ours, and the component's
    as appVersion.

    Args:
        upstream: the version of a chart that lies in a Go module; None for any other.
    """
    own = str(raw["trainyard"])
    for path in sorted(tree.root.glob("charts/*/Chart.yaml")):
        name, file = path.parent.name, path.relative_to(tree.root).as_posix()
        scalars = Scalars(tree.read(file))
        found = scalars.values()
        component = raw["components"].get(name)
        version, app = found[("version",)], found.get(("appVersion",), "")
        follows = component is not None and version == app.removeprefix("v")
        _set(tree, file, scalars, ("version",), str(component) if follows else own)
        if name == "trainyard":
            _set(tree, file, scalars, ("appVersion",), own)
        elif component is not None:
            _set(tree, file, scalars, ("appVersion",), ("v" if app.startswith("v") else "") + str(component))
        tree.write(file, scalars.text())
    if tree.exists(UMBRELLA):
        _parts(tree, raw, upstream)


def _parts(tree: Tree, raw: dict[str, Any], upstream: Callable[[str], str | None]) -> None:
    scalars = Scalars(tree.read(UMBRELLA))
    found = scalars.values()
    for keys, name in found.items():
        if keys[:1] != ("dependencies",) or keys[-1] != "name":
            continue
        own = f"charts/{name}/Chart.yaml"
        wanted = Scalars(tree.read(own)).values()[("version",)] if tree.exists(own) else upstream(name)
        component = raw["components"].get(pin_of(name))
        here = (*keys[:-1], "version")
        # A chart that can't be looked at may have kept its number over a patch release.
        if wanted is None and component and found[here].split(".")[:2] != component.split(".")[:2]:
            wanted = component
        if wanted is None and component is None:
            tree.leave(UMBRELLA, f"the part {name} has no pin", "add it to versions.yaml under components")
        if wanted is not None:
            _set(tree, UMBRELLA, scalars, here, wanted, name)
    tree.write(UMBRELLA, scalars.text())


def ceiling(tree: Tree) -> None:
    """The newest Kubernetes that charts may be installed on, as `make matrix` found it."""
    try:
        wanted = results.ceiling(results.read(tree.root))
    except TrainyardError:
        return  # the page that is made of the same results says so
    for path in sorted(tree.root.glob("charts/*/Chart.yaml")) if wanted else ():
        file = path.relative_to(tree.root).as_posix()
        scalars = Scalars(tree.read(file))
        found = scalars.values().get(("kubeVersion",))
        if found is not None:
            _set(tree, file, scalars, ("kubeVersion",), results.bounded(found, wanted))
        tree.write(file, scalars.text())


def releases(tree: Tree, raw: dict[str, Any]) -> None:
    """What this release installs, in `components/releases.yaml`."""
    if not (tree.exists(RELEASES) and tree.exists(UMBRELLA)):
        return
    wanted, file = installs(tree.root, raw), RELEASES
    scalars, release = Scalars(tree.read(file)), str(raw["trainyard"])
    found = scalars.values()
    if not any(keys[:2] == ("releases", release) for keys in found):
        lines = [f"    {name}: {_quoted(version)}" for name, version in wanted.items()]
        text = tree.read(file).rstrip("\n") + "\n" + "\n".join([f"  {release}:", *lines]) + "\n"
        tree.write(file, text, f"the release {release}")
        return
    for name, version in wanted.items():
        if ("releases", release, name) in found:
            _set(tree, file, scalars, ("releases", release, name), version, name)
    text = scalars.text()
    for name in (name for name in wanted if ("releases", release, name) not in found):
        entry = re.compile(rf"^  [\"']?{re.escape(release)}[\"']?:\n(?:    .*\n)+", re.M)
        line = f"    {name}: {_quoted(wanted[name])}\n"
        text = entry.sub(lambda match, line=line: match[0] + line, text, count=1)
        tree.note(file, f"{name} {wanted[name]}")
    tree.write(file, text)


def _set(tree: Tree, file: str, scalars: Scalars, keys: tuple[str | int, ...], wanted: str, name: str = "") -> None:
    if scalars.set(keys, wanted):
        tree.note(file, f"{name or '.'.join(map(str, keys))} {wanted}")


def _quoted(version: str) -> str:
    """A version as YAML that stays text."""
    return f'"{version}"' if version.count(".") < 2 else version
