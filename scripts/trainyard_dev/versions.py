"""Reads `versions.yaml`, the only file with version pins, and replaces placeholders such as `{kubernetes}`."""

import functools
import os
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from trainyard.components.registry import pin_of
from trainyard.contract.model import OWN
from trainyard.errors import TrainyardError, UsageError
from trainyard.paths import ROOT
from trainyard_dev import folders

FILE = "versions.yaml"
UMBRELLA = "charts/trainyard/Chart.yaml"
UNPROVED = "unproved"  # in place of a digest that no public file confirms
OWN_MODULES = "trainyard.io/tools/"  # of sets with only our own code
# Names the Kubernetes of the test cluster, such as 1.37; unset or empty: the file's.
CLUSTER = "TRAINYARD_CLUSTER_KUBERNETES"
# An image of images/trainer/Containerfile that the file doesn't list.
TRAINER = {"context": "images", "dir": "images/trainer", "own": True, "stage": "check", "demand": True}
_PLACE = re.compile(r"\{([a-z][a-z0-9.-]*?)(?:\.(major|minor))?\}")


@dataclass(frozen=True)
class ToolSet:
    """Binaries built together, from the go.mod in `tools/<name>/` or from that of another set: `of`.

    A set of another `family` is a further version of it: its binaries are found by the family's name and version only.
    """

    name: str
    module: str
    version: str
    purpose: str
    packages: tuple[tuple[str, str], ...]  # (Go package path, binary name)
    cgo: bool = False
    tags: tuple[str, ...] = ()
    stamp: dict[str, str] = field(default_factory=dict)
    of: str = ""
    family: str = ""
    arch: str = ""  # GOARCH; empty: this machine's

    @property
    def number(self) -> str:
        """The version without the leading v."""
        return self.version.removeprefix("v")

    @property
    def default(self) -> bool:
        """Whether its binaries are the default where no version is named."""
        return self.family in ("", self.name)


def is_version(version: str, wanted: str) -> bool:
    """Whether a version is the wanted one or begins with it: v1.35.4 is 1.35.4, v1.35.4 and 1.35."""
    found, parts = version.removeprefix("v").split("."), wanted.removeprefix("v").split(".")
    return found[: len(parts)] == parts


@dataclass(frozen=True)
class Image:
    """A container image: its reference and sources."""

    name: str
    ref: str
    dir: str
    context: str
    bin: tuple[str, ...] = ()
    own: bool = False
    also: tuple[str, ...] = ()
    inputs: tuple[str, ...] = ()
    files: dict[str, str] = field(default_factory=dict)  # name in files/ -> "<tool set>:<path in its module>"
    local: bool = False
    stage: str = "install"  # of a run at which it is first needed (cluster, install or check)
    demand: bool = False  # made only for a check or a command that needs it
    large: float = 0  # GB, compressed, of an image with several: made only by name or with --cuda
    parent: str = ""  # the image used as BASE; empty: the plain base
    older: bool = False  # its plain base is that of the older Debian


@dataclass(frozen=True)
class Versions:
    """All pins, as objects; `raw` is the file with every placeholder resolved."""

    raw: dict[str, Any]
    tools: dict[str, ToolSet]
    images: dict[str, Image]

    @property
    def kubernetes(self) -> str:
        """Kubernetes' version without the leading v, such as `1.34.2`."""
        return self.raw["components"]["kubernetes"]

    def exact(self, name: str) -> str:
        """The reference to pull for a name of `pull`: by digest where a public file confirms one, else by its tag."""
        ref, digest = self.raw["pull"][name], self.raw["published"][name]["digest"]
        return ref if digest == UNPROVED else f"{ref.rpartition(':')[0]}@{digest.partition('@')[2]}"

    @property
    def ours(self) -> list[Image]:
        """Our own images that a site can pull."""
        return [one for one in self.images.values() if one.own and not one.local and one.stage != "cluster"]

    def image(self, name: str) -> str:
        """The full reference of the image called `name`."""
        return self.images[name].ref


def read(root: Path) -> dict[str, Any]:
    """Reads the file of a tree as data, placeholders resolved.

    Raises:
        TrainyardError: it is missing, not YAML, or names a version that it does not pin.
    """
    return resolved(_file(root))


def _file(root: Path) -> dict[str, Any]:
    try:
        raw: dict[str, Any] = yaml.safe_load((root / FILE).read_text())
    except (OSError, yaml.YAMLError) as error:
        raise TrainyardError(f"the file can't be read ({error})", where=str(root / FILE)) from None
    for file in sorted((root / "images").glob("trainer-*/requirements.txt")) if isinstance(raw, dict) else ():
        name = file.parent.name
        if not (file.parent / "Containerfile").exists():
            raw.setdefault("images", {}).setdefault(name, TRAINER | {"inputs": [f"images/{name}"]})
    for name, one in raw.get("images", {}).items() if isinstance(raw, dict) else ():
        usual = {"ref": f"{OWN}/trainyard/{name}:{{trainyard}}"} if one.get("own") else {}
        one |= {"dir": folders.find(root, folders.IMAGES, name)} | usual | one
    for name, one in raw.get("tools", {}).items() if isinstance(raw, dict) else ():
        if (family := one.get("family")) and "stamp" not in one:
            one["stamp"] = {key: text.replace(f"{{{family}", f"{{{name}")
                            for key, text in raw["tools"][family].get("stamp", {}).items()}  # fmt: skip
    return raw


def with_cluster(raw: dict[str, Any], wanted: str) -> dict[str, Any]:
    """The file's data with another Kubernetes for the test cluster: all its binaries from that minor's go.mod.

    Args:
        raw: data of the file, with placeholders.
        wanted: such as `1.37`, or empty for the file's.

    Raises:
        UsageError: no tool set builds it.
    """
    own = raw["components"]["kubernetes"]
    if not wanted or is_version(own, wanted):
        return raw
    known = {name: spec["version"].removeprefix("v") for name, spec in raw["tools"].items()
             if spec.get("family") == "kubernetes"}  # fmt: skip
    for name, version in known.items():
        if is_version(version, wanted):
            published = raw["published"] | {"node-image": raw["published"]["node-image"] | {"digest": UNPROVED}}
            tools = {key: spec | {"of": name} if spec["version"] == "v{kubernetes}" else spec
                     for key, spec in raw["tools"].items()}  # fmt: skip
            components = raw["components"] | {"kubernetes": version}
            return raw | {"components": components, "tools": tools, "published": published}
    there = ", ".join(sorted([own, *known.values()]))
    raise UsageError(f"no tool set builds Kubernetes {wanted}", hint=f"use {there}, or add a set")


def installs(root: Path, raw: dict[str, Any]) -> dict[str, str]:
    """Versions that the chart of a tree installs, by component: from the pins, or from our own charts."""
    found = {"trainyard": str(raw["trainyard"])}
    for dependency in yaml.safe_load((root / UMBRELLA).read_text()).get("dependencies", []):
        name = dependency["name"]
        own = root / "charts" / name / "Chart.yaml"
        version = raw["components"].get(pin_of(name))
        if version is None and own.exists():
            version = yaml.safe_load(own.read_text()).get("appVersion")
        if version is not None:
            found[name] = str(version)
    return found


def resolved(raw: dict[str, Any]) -> dict[str, Any]:
    """The same data with versions in place of `{name}`, `{name.major}` and `{name.minor}`.

    A name is `trainyard`, a component or else a tool set; its version is inserted without a leading v.
    """
    known = {"trainyard": str(raw["trainyard"])} | {name: str(version) for name, version in raw["components"].items()}
    for name, spec in raw["tools"].items():
        known.setdefault(name, _filled(spec["version"], known).removeprefix("v"))
    return _walk(raw, known)


def _walk(value: Any, known: dict[str, str]) -> Any:
    if isinstance(value, dict):
        return {key: _walk(below, known) for key, below in value.items()}
    if isinstance(value, list):
        return [_walk(below, known) for below in value]
    return _filled(value, known) if isinstance(value, str) else value


def _filled(text: str, known: dict[str, str]) -> str:
    return _PLACE.sub(lambda match: _version(match[1], match[2], known), text)


def _version(name: str, part: str | None, known: dict[str, str]) -> str:
    if name not in known:
        raise TrainyardError(f"{{{name}}} names no version", where=FILE, hint="use a component or a tool set")
    return known[name] if part is None else known[name].split(".")[("major", "minor").index(part)]


@functools.cache
def load() -> Versions:
    """Reads and parses the file once per process, with the Kubernetes that $TRAINYARD_CLUSTER_KUBERNETES names."""
    raw = resolved(with_cluster(_file(ROOT), os.environ.get(CLUSTER, "")))
    tools = {
        name: ToolSet(
            name=name,
            module=spec["module"],
            version=spec["version"],
            purpose=spec["for"],
            packages=tuple((p["path"], p["name"]) for p in spec["packages"]),
            cgo=spec.get("cgo", False),
            tags=tuple(spec.get("tags", ())),
            stamp=spec.get("stamp", {}),
            of=spec.get("of", ""),
            family=spec.get("family", name),
        )
        for name, spec in raw["tools"].items()
    }
    images = {
        name: Image(
            name=name,
            ref=spec["ref"],
            dir=spec["dir"],
            context=spec.get("context", spec["dir"]),
            bin=tuple(spec.get("bin", ())),
            own=spec.get("own", False),
            also=tuple(spec.get("also", ())),
            inputs=tuple(folders.matching(ROOT, spec.get("inputs", (spec["dir"],)))),
            files=spec.get("files", {}),
            local=spec.get("local", False),
            stage=spec.get("stage", "install"),
            demand=spec.get("demand", False),
            large=spec.get("large", False),
            parent=spec.get("parent", ""),
            older=spec.get("older", False),
        )
        for name, spec in raw["images"].items()
    }
    return Versions(raw=raw, tools=tools, images=images)
