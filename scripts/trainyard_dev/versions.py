"""Reads `versions.yaml`, the only file with version pins."""

from __future__ import annotations

import functools
from dataclasses import dataclass, field
from typing import Any

import yaml

from trainyard.paths import ROOT


@dataclass(frozen=True)
class ToolSet:
    """Binaries built together, from `tools/<name>/go.mod` or from that of another set: `of`."""

    name: str
    module: str
    version: str
    purpose: str
    packages: tuple[tuple[str, str], ...]  # (Go package path, binary name)
    cgo: bool = False
    tags: tuple[str, ...] = ()
    stamp: dict[str, str] = field(default_factory=dict)
    of: str = ""


@dataclass(frozen=True)
class Image:
    """One container image: its reference and what it is made of."""

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
    stage: str = "install"  # of a run: when it is needed first (cluster, install or check)
    demand: bool = False  # made only for a check or a command that asks for it
    parent: str = ""  # the image that its BASE is; empty: the plain base


@dataclass(frozen=True)
class Versions:
    """All pins, as objects; `raw` is the file as it stands."""

    raw: dict[str, Any]
    tools: dict[str, ToolSet]
    images: dict[str, Image]

    @property
    def kubernetes(self) -> str:
        """Kubernetes' version without the leading v, such as `1.34.2`."""
        return self.raw["components"]["kubernetes"]

    def image(self, name: str) -> str:
        """The full reference of the image called `name`."""
        return self.images[name].ref


@functools.cache
def load() -> Versions:
    """Reads and parses the file once per process."""
    raw = yaml.safe_load((ROOT / "versions.yaml").read_text())
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
            inputs=tuple(spec.get("inputs", (spec["dir"],))),
            files=spec.get("files", {}),
            local=spec.get("local", False),
            stage=spec.get("stage", "install"),
            demand=spec.get("demand", False),
            parent=spec.get("parent", ""),
        )
        for name, spec in raw["images"].items()
    }
    return Versions(raw=raw, tools=tools, images=images)
