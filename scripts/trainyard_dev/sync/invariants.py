"""Rules that hold without a writer: consistency of `versions.yaml`, exact Python pins, ends of support, figures."""

import importlib.metadata
import re
import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from trainyard.errors import TrainyardError
from trainyard.paths import ROOT
from trainyard_dev import folders
from trainyard_dev.bench import configurations, gate, registry, summary
from trainyard_dev.images.packages import Finding
from trainyard_dev.matrix import support
from trainyard_dev.sync import images, wheels
from trainyard_dev.sync.pages import FIGURES
from trainyard_dev.sync.texts import PIN
from trainyard_dev.sync.tree import Difference


def differences(root: Path, raw: dict[str, Any]) -> Iterator[Difference]:
    """All broken rules of a tree."""
    checks = (pins(raw), python(root), wheels.outdated(root), support.differences(root, raw),
              measured(root))  # fmt: skip
    for found in checks:
        yield from (Difference(*one) for one in found)


def pins(raw: dict[str, Any]) -> Iterator[Finding]:
    """`versions.yaml` itself: repeated facts agree."""
    tools, components = raw["tools"], raw["components"]
    for name, version in components.items():
        if name in tools and _bare(tools[name]["version"]) != _bare(version):
            yield _pin(
                f"components.{name} is {version}, tools.{name}.version is {tools[name]['version']}", "use one version"
            )
    for name, spec in tools.items():
        for variable, value in spec.get("stamp", {}).items():
            if re.match(r"v\d+\.\d+", value) and value != spec["version"]:
                yield _pin(f"tools.{name}.stamp {variable} is {value}", f"write {spec['version']}")
    for name, spec in tools.items():
        if spec.get("family", name) not in tools:
            yield _pin(f"tools.{name}.family is {spec['family']}", "name the tool set of the other versions")
    default = [spec for name, spec in tools.items() if spec.get("family", name) == name]
    made_by = {package["name"]: _bare(spec["version"]) for spec in default for package in spec["packages"]}
    for name, image in raw["images"].items():
        tag = image["ref"].rpartition(":")[2]
        wanted = {raw["trainyard"]} if image.get("own") else {made_by[b] for b in image.get("bin", []) if b in made_by}
        unknown = [b for b in image.get("bin", []) if b not in made_by]
        if unknown:
            yield _pin(f"images.{name} needs {', '.join(unknown)}, which no tool set builds", "add it under tools")
        elif re.sub(r"-\d+$", "", _bare(image.get("release", tag))) not in wanted:
            yield _pin(
                f"images.{name} has the tag {tag}", f"use the version of its contents: {' or '.join(sorted(wanted))}"
            )
    node = raw["pull"]["node-image"]
    if _bare(node.rpartition(":")[2]) != components["kubernetes"]:
        yield _pin(f"pull.node-image is {node}", f"use the tag v{components['kubernetes']}")
    for what, hint in images.published(raw):
        yield _pin(what, hint)


def python(root: Path, installed: Callable[[str], str] = importlib.metadata.version) -> Iterator[Finding]:
    """`pyproject.toml`, `requirements.lock` and the images' requirements: exact, within the ranges, and installed."""
    project = tomllib.loads((root / "pyproject.toml").read_text())["project"]
    locked: dict[str, str] = {}
    for number, line in _lines(root / "requirements.lock"):
        if match := PIN.match(line):
            locked[canonicalize_name(match[1])] = match[3]
        else:
            yield f"requirements.lock:{number}", f"`{line}` is not an exact pin", "write NAME==VERSION"
    yield from _ranges(project["dependencies"], locked)
    for wish in (one for extra in project.get("optional-dependencies", {}).values() for one in extra):
        match = PIN.match(wish)
        if not match:
            yield "pyproject.toml", f"`{wish}` is not an exact pin", "write NAME==VERSION"
        elif canonicalize_name(match[1]) not in locked:
            yield "requirements.lock", f"{match[1]} is missing", f"pyproject.toml pins {match[3]}: use one version"
    for name, version in locked.items():
        try:
            found = installed(name)
        except importlib.metadata.PackageNotFoundError:
            found = "absent"
        if found != version:
            what = f"{name} {version} is pinned, {found} is installed"
            yield "requirements.lock", what, "run the command with bin/trainyard"
    for file in folders.each(root, folders.IMAGES, "requirements.txt"):
        for number, line in _lines(file):
            if not line.startswith("--hash") and not PIN.match(line):
                where = f"{file.relative_to(root)}:{number}"
                yield where, f"`{line}` is not an exact pin", "write NAME==VERSION with its hash"


def _ranges(wishes: list[str], locked: dict[str, str]) -> Iterator[Finding]:
    """The wheel's requirements: each has a lower and an upper bound, and the locked version is between them."""
    for wish in wishes:
        found = Requirement(wish)
        signs = {one.operator for one in found.specifier}
        if not signs & {">=", "~="} or not signs & {"<", "<=", "~="}:
            yield "pyproject.toml", f"`{wish}` lacks a lower or upper bound", "write NAME>=LEAST,<NEXT"
        have = locked.get(canonicalize_name(found.name), "absent")
        if have == "absent" or not found.specifier.contains(have):
            hint = f"pyproject.toml allows {found.specifier}: use one version"
            yield "requirements.lock", f"{found.name} is {have}", hint


def measured(root: Path) -> Iterator[Finding]:
    """Columns whose configuration in the chart neither was measured nor passed the gate."""
    if not (root / FIGURES).exists():
        return  # a tree that publishes no figures
    try:
        found = summary.read(root / FIGURES)
    except TrainyardError:
        return  # the page made from it reports it
    more = {file.stem for file in (root / FIGURES).glob("*.csv")} - {*registry.BENCHES}  # figures of other pages
    read = [found, *(summary.read(root / FIGURES, [bench]) for bench in sorted(more))]
    for name in (name for one in read for name in summary.unproved(one)):
        yield FIGURES, f"{name} lacks a version or an overlay", "add what was measured, or remove the row"
    today, held = configurations.configurations(), gate.passed(root / gate.FILE.relative_to(ROOT))
    for name in summary.outdated(found):
        if held and name not in held:
            continue  # a variant of what the gate measures: the page reports that it is stale
        if name not in today or held.get(name) != today[name].digest:
            what = f"{name} is neither the measured configuration nor a configuration that passed the gate"
            yield FIGURES, what, "run `bin/trainyard bench gate`, then `bin/trainyard bench page`"


def _pin(what: str, hint: str) -> Finding:
    return "versions.yaml", what, hint


def _bare(version: str) -> str:
    return version.removeprefix("v")


def _lines(file: Path) -> Iterator[tuple[int, str]]:
    """Numbered lines that are neither empty nor comments."""
    for number, line in enumerate(file.read_text().splitlines(), 1):
        if line.strip() and not line.lstrip().startswith("#"):
            yield number, line.strip()
