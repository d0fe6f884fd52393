"""What the tree pins and compiles: Python packages of every lock, Go modules of every set, the Go compiler."""

from __future__ import annotations

import datetime
import json
import re
import tomllib
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from packaging.utils import canonicalize_name

from trainyard.errors import TrainyardError
from trainyard_dev.audit.advisories import Advisory, Part
from trainyard_dev.audit.sources import Open
from trainyard_dev.matrix import support
from trainyard_dev.sync.modules import requirements
from trainyard_dev.tools import golang
from trainyard_dev.versions import FILE

_PIN = re.compile(r"^([A-Za-z0-9][A-Za-z0-9._-]*)(?:\[[^\]]*\])?==([^\s;\\]+)")
STDLIB = "stdlib"
MOST_DAYS = 30  # that security updates of Debian may wait: docs/support.md says so
# Module -> (version, packages of it that are compiled in), of a set; raises TrainyardError.
Modules = dict[str, tuple[str, frozenset[str]]]


@dataclass(frozen=True)
class Held:
    """Parts that were found, and what could not be looked at."""

    parts: tuple[Part, ...]
    open: tuple[Open, ...] = ()


def python(root: Path) -> Held:
    """Every exact pin: the lock of development, each image's requirements, and what builds our wheel."""
    files = [root / "requirements.lock", *sorted((root / "images").glob("*/requirements.txt"))]
    parts = []
    for file in filter(Path.exists, files):
        for line in file.read_text().splitlines():
            if match := _PIN.match(line):
                where = file.relative_to(root).as_posix()
                shipped = where.startswith("images/")
                parts.append(Part("PyPI", canonicalize_name(match[1]), match[2], where, shipped=shipped))
    project = root / "pyproject.toml"
    build = tomllib.loads(project.read_text()).get("build-system", {}) if project.exists() else {}
    for wish in build.get("requires", ()):
        if match := _PIN.match(wish):
            parts.append(Part("PyPI", canonicalize_name(match[1]), match[2], "pyproject.toml"))
    return Held(tuple(parts))


def go(root: Path, raw: dict[str, Any], listed: Callable[[Path, dict[str, Any]], Modules]) -> Held:
    """The modules of every set, each with its packages that are compiled in.

    What `listed` can't say of a set is open, and the set's go.mod is taken as it stands.

    Args:
        listed: what a set compiles, of its folder and its entry in versions.yaml.
    """
    parts: list[Part] = []
    left: list[Open] = []
    images = (image for image in raw.get("images", {}).values() if ships(image))
    binaries = {name for image in images for name in image.get("bin", ())}
    for name, spec in raw["tools"].items():
        own = spec.get("family", name) == name
        shipped = own and any(package["name"] in binaries for package in spec["packages"])
        folder = root / "tools" / spec.get("of", name)
        where = f"tools/{folder.name}" if folder.name == name else f"tools/{folder.name} ({name})"
        try:
            found = listed(folder, spec)
        except TrainyardError as error:
            left.append(Open(f"what {where} compiles", error.what))
            found = _required(folder / "go.mod")
        parts += [Part("Go", m, version, where, packages, shipped) for m, (version, packages) in found.items()]
    return Held(tuple(parts), tuple(left))


def ships(image: Mapping[str, Any]) -> bool:
    """Whether an image of versions.yaml is for sites, not for the test cluster and this machine alone."""
    return not image.get("local") and image.get("stage") != "cluster"


def compiled(folder: Path, spec: dict[str, Any]) -> Modules:
    """What a set compiles, as Go lists it; the standard library is that of this machine's compiler.

    Raises:
        TrainyardError: Go can't say, such as where a module can't be had.
    """
    cgo = "1" if spec.get("cgo") else "0"
    env = {"GOFLAGS": "-mod=readonly -buildvcs=false", "CGO_ENABLED": cgo, **golang.env()}
    module = "{{.Path}}\t{{.Version}}\t{{with .Replace}}{{.Path}}\t{{.Version}}{{end}}"
    fields = "{{.ImportPath}}\t{{with .Module}}" + module + "{{end}}"
    argv = ["list", "-deps", "-e", "-tags", ",".join(spec.get("tags", ())), "-f", fields]
    done = golang.go(*argv, *(package["path"] for package in spec["packages"]), cwd=folder, env=env, timeout=900)
    modules: dict[tuple[str, str], set[str]] = defaultdict(set)
    for line in done.stdout.splitlines():
        package, *of = [*line.split("\t"), "", "", "", ""][:5]
        path, version, other, its = of
        if not path:
            modules[STDLIB, ""].add(package)
        elif other and its:
            modules[other, its].add(package)
        elif version:
            modules[path, version].add(package)
    compiler = json.loads(golang.go("env", "-json", "GOVERSION", cwd=folder, env=env).stdout)["GOVERSION"]
    return {path: (version or compiler.removeprefix("go").split()[0], frozenset(packages))
            for (path, version), packages in modules.items()}  # fmt: skip


def old_packages(raw: dict[str, Any], today: datetime.date) -> tuple[list[Part], list[Advisory]]:
    """Debian's packages in images, once the day that they are of is longer ago than we promise."""
    day = raw.get("debian", {}).get("packages")
    try:
        last = datetime.date.fromisoformat(str(day or today)) + datetime.timedelta(MOST_DAYS)
    except ValueError:
        raise TrainyardError(
            f"debian.packages is {day}, which is no day", where=FILE, hint="write 'YYYY-MM-DD'"
        ) from None
    if today <= last:
        return [], []
    said = Advisory("old-packages", "support", "debian packages", (), versions=frozenset({day}),
                    what=f"They should have been made anew by {last}.", source=FILE)  # fmt: skip
    return [Part("support", "debian packages", day, FILE, shipped=True)], [said]


def past_support(root: Path, raw: dict[str, Any], today: datetime.date) -> tuple[list[Part], list[Advisory]]:
    """What has left its support by a day and has no reason to stay, as parts and what is to be said of them.

    Raises:
        TrainyardError: support.yaml can't be read.
    """
    if not (root / support.FILE).exists():
        return [], []
    known = support.read(root)
    have = support.pinned(raw)
    ended = [(line, have.get(line.name, line.line)) for line in (*known.lines.values(), *known.kubernetes.values())
             if line.over(today) and not line.past]  # fmt: skip
    parts = [Part("support", line.name, version, support.FILE) for line, version in ended]
    return parts, [
        Advisory("past-support", "support", line.name, (), versions=frozenset({version.removeprefix("v")}),
                 what=f"Its support ended ({line.ends}).", source="support.yaml", link=line.source)
        for line, version in ended
    ]  # fmt: skip


def _required(go_mod: Path) -> Modules:
    """What a go.mod names, after its replacements; nothing where there is none."""
    if not go_mod.exists():
        return {}
    required, replaced = requirements(go_mod.read_text())
    return {path: (version, frozenset()) for path, version in _effective(required, replaced) if version}


def _effective(required: dict[str, str], replaced: dict[str, tuple[str, str]]) -> Iterator[tuple[str, str]]:
    for module, version in required.items():
        yield replaced.get(module, (module, version))
