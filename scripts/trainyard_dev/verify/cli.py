"""`trainyard verify`: copies of pins agree with `versions.yaml`, generated files with what they are made from.

Every check takes the tree's root and the parsed `versions.yaml` and returns all the differences that it finds.
"""

from __future__ import annotations

import importlib.metadata
import re
import tomllib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
import yaml
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from trainyard.components.registry import pin_of
from trainyard.errors import TrainyardError
from trainyard.paths import ROOT
from trainyard_dev.verify import copies as verify_copies
from trainyard_dev.verify import generated as verify_generated
from trainyard_dev.verify import images as verify_images
from trainyard_dev.verify import importable
from trainyard_dev.verify import wheels as verify_wheels
from trainyard_dev.versions import OWN_MODULES, read

PIN = re.compile(r"^([A-Za-z0-9][A-Za-z0-9._-]*)(\[[^\]]*\])?==([^\s;\\]+)")


@dataclass(frozen=True, order=True)
class Difference:
    """One copy that disagrees: the file, what is wrong there, and what to change."""

    file: str
    what: str
    hint: str

    def __str__(self) -> str:
        return f"{self.file}: {self.what}. {self.hint}."


@click.command()
def verify() -> None:
    """Check that copies of pins and generated files are up to date."""
    found = differences(ROOT)
    for difference in found:
        click.echo(str(difference))
    if found:
        copies = "copy disagrees with what it is" if len(found) == 1 else "copies disagree with what they are"
        raise TrainyardError(f"{len(found)} {copies} made from", hint="change the files named above")
    click.echo("every copy of a pin agrees with versions.yaml, and every generated file is up to date")


def differences(root: Path) -> list[Difference]:
    """All differences of a tree, sorted by file.

    Raises:
        TrainyardError: versions.yaml itself can't be read.
    """
    raw = read(root)
    checks = (pins, go_modules, python, charts, images, copies, generated)
    return sorted({difference for check in checks for difference in check(root, raw)})


def pins(root: Path, raw: dict[str, Any]) -> Iterator[Difference]:
    """`versions.yaml` itself: what it says twice, it says alike."""
    tools, components = raw["tools"], raw["components"]
    for name, version in components.items():
        if name in tools and _bare(tools[name]["version"]) != _bare(version):
            yield _pin(
                f"components.{name} is {version}, tools.{name}.version is {tools[name]['version']}", "make both alike"
            )
    for name, spec in tools.items():
        for variable, value in spec.get("stamp", {}).items():
            if re.match(r"v\d+\.\d+", value) and value != spec["version"]:
                yield _pin(f"tools.{name}.stamp {variable} is {value}", f"write {spec['version']}")
    for name, spec in tools.items():
        if spec.get("family", name) not in tools:
            yield _pin(f"tools.{name}.family is {spec['family']}", "name the tool set that it is a further version of")
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
                f"images.{name} has the tag {tag}", f"use the version of what is in it: {' or '.join(sorted(wanted))}"
            )
    node = raw["pull"]["node-image"]
    if _bare(node.rpartition(":")[2]) != components["kubernetes"]:
        yield _pin(f"pull.node-image is {node}", f"use the tag v{components['kubernetes']}")


def go_modules(root: Path, raw: dict[str, Any]) -> Iterator[Difference]:
    """`tools/<set>/go.mod` asks for exactly the pinned module, and go.sum holds its checksum."""
    for folder in sorted(
        p for p in (root / "tools").glob("*/") if (p / "go.mod").exists() and p.name not in raw["tools"]
    ):
        yield Difference(
            f"tools/{folder.name}", "versions.yaml has no tool set of this name", "add it there or remove the folder"
        )
    for name, spec in raw["tools"].items():
        folder = f"tools/{spec.get('of', name)}"
        file, wanted = f"{folder}/go.mod", f"{spec['module']} {spec['version']}"
        if not (root / file).exists():
            yield Difference(file, "the file is missing", f"write one that requires {wanted}")
            continue
        text = (root / file).read_text()
        if spec["module"].startswith(OWN_MODULES):
            if f"module {spec['module']}" not in text.splitlines():
                yield Difference(
                    file, "its module has another name than in versions.yaml", f"write: module {spec['module']}"
                )
            continue
        used = effective_modules(text)
        if spec["module"] not in used:
            yield Difference(file, f"{spec['module']} is not required", f"write: require {wanted}")
        elif used[spec["module"]] != spec["version"]:
            yield Difference(
                file, f"{spec['module']} is {used[spec['module']]}", f"write {spec['version']} or change versions.yaml"
            )
        sums = root / folder / "go.sum"
        if not sums.exists():
            yield Difference(f"{folder}/go.sum", "the file is missing", f"run `go mod tidy` in {folder}")
        elif f"{wanted} h1:" not in sums.read_text():
            yield Difference(f"{folder}/go.sum", f"no checksum of {wanted}", f"run `go mod tidy` in {folder}")


def effective_modules(go_mod: str) -> dict[str, str]:
    """Module -> version as a build uses them: what go.mod requires, after its replacements."""
    required, replaced = requirements(go_mod)
    return dict(replaced.get(module, (module, version)) for module, version in required.items())


def requirements(go_mod: str) -> tuple[dict[str, str], dict[str, tuple[str, str]]]:
    """What a go.mod requires, and what it replaces by which module or folder; a folder has no version."""
    required: dict[str, str] = {}
    replaced: dict[str, tuple[str, str]] = {}
    block = ""
    for line in go_mod.splitlines():
        words = line.partition("//")[0].split()
        if not words:
            continue
        if words[-1] == "(":
            block = words[0]
            continue
        if words[0] == ")":
            block = ""
            continue
        verb, rest = (block, words) if block else (words[0], words[1:])
        if verb == "require" and len(rest) >= 2:
            required[rest[0]] = rest[1]
        if verb == "replace" and "=>" in rest:
            arrow = rest.index("=>")
            target = [*rest[arrow + 1 :], ""]
            replaced[rest[0]] = (target[0], target[1])
    return required, replaced


def python(root: Path, raw: dict[str, Any],
           installed: Callable[[str], str] = importlib.metadata.version) -> Iterator[Difference]:  # fmt: skip
    """`pyproject.toml`, `requirements.lock` and the images' requirements: exact, and alike."""
    project = tomllib.loads((root / "pyproject.toml").read_text())["project"]
    if project["version"] != raw["trainyard"]:
        yield Difference(
            "pyproject.toml",
            f"the version is {project['version']}",
            f"write {raw['trainyard']} or change versions.yaml",
        )
    locked: dict[str, str] = {}
    for number, line in _lines(root / "requirements.lock"):
        if match := PIN.match(line):
            locked[canonicalize_name(match[1])] = match[3]
        else:
            yield Difference(f"requirements.lock:{number}", f"`{line}` is no exact pin", "write NAME==VERSION")
    yield from _ranges(project["dependencies"], locked)
    for wish in (one for extra in project.get("optional-dependencies", {}).values() for one in extra):
        match = PIN.match(wish)
        if not match:
            yield Difference("pyproject.toml", f"`{wish}` is no exact pin", "write NAME==VERSION")
        elif locked.get(canonicalize_name(match[1])) != match[3]:
            have = locked.get(canonicalize_name(match[1]), "absent")
            yield Difference(
                "requirements.lock", f"{match[1]} is {have}", f"pyproject.toml pins {match[3]}: make both alike"
            )
    for name, version in locked.items():
        try:
            found = installed(name)
        except importlib.metadata.PackageNotFoundError:
            found = "absent"
        if found != version:
            yield Difference(
                "requirements.lock",
                f"{name} {version} is pinned, {found} is installed",
                "run the command by bin/trainyard",
            )
    for file in sorted((root / "images").glob("*/requirements.txt")):
        for number, line in _lines(file):
            if not line.startswith("--hash") and not PIN.match(line):
                where = f"{file.relative_to(root)}:{number}"
                yield Difference(where, f"`{line}` is no exact pin", "write NAME==VERSION with its hash")
    for name, what, hint in (*verify_wheels.differences(root), *importable.differences(root)):
        yield Difference(name, what, hint)


def _ranges(wishes: list[str], locked: dict[str, str]) -> Iterator[Difference]:
    """What the wheel asks for: a lower and an upper bound, and what is locked lies between them."""
    for wish in wishes:
        found = Requirement(wish)
        signs = {one.operator for one in found.specifier}
        if not signs & {">=", "~="} or not signs & {"<", "<=", "~="}:
            yield Difference("pyproject.toml", f"`{wish}` has no two bounds", "write NAME>=LEAST,<NEXT")
        have = locked.get(canonicalize_name(found.name), "absent")
        if have == "absent" or not found.specifier.contains(have):
            hint = f"pyproject.toml allows {found.specifier}: make both alike"
            yield Difference("requirements.lock", f"{found.name} is {have}", hint)


def charts(root: Path, raw: dict[str, Any]) -> Iterator[Difference]:
    """`charts/*/Chart.yaml`: versions are ours or their component's; the umbrella names those of its parts."""
    found = {f.parent.name: yaml.safe_load(f.read_text()) for f in sorted((root / "charts").glob("*/Chart.yaml"))}
    for name, chart in found.items():
        wanted = {raw["trainyard"], raw["components"].get(name, raw["trainyard"])}
        # What a distribution's package brings (the NFS server) has no pin of ours.
        pinned = name == "trainyard" or name in raw["components"]
        for key in ("version", "appVersion") if pinned else ("version",):
            if _bare(str(chart.get(key, ""))) not in wanted:
                yield Difference(
                    f"charts/{name}/Chart.yaml", f"{key} is {chart.get(key)}", f"write {' or '.join(sorted(wanted))}"
                )
    for part in found.get("trainyard", {}).get("dependencies", []):
        name, version, file = part["name"], str(part["version"]), "charts/trainyard/Chart.yaml"
        component = raw["components"].get(pin_of(name))
        if name in found:
            if version != found[name].get("version"):
                yield Difference(
                    file, f"the part {name} is {version}", f"charts/{name}/Chart.yaml says {found[name].get('version')}"
                )
        elif component is None:
            yield Difference(file, f"the part {name} has no pin", "add it to versions.yaml under components")
        # An upstream chart may keep its number over a patch release; packaging proves the exact one.
        elif version.split(".")[:2] != component.split(".")[:2]:
            yield Difference(file, f"the part {name} is {version}", f"versions.yaml pins {component}")


def images(root: Path, raw: dict[str, Any]) -> Iterator[Difference]:
    """Image references anywhere in the tree, and the base that Containerfiles stand on."""
    for file, what, hint in verify_images.differences(root, raw):
        yield Difference(file, what, hint)


def copies(root: Path, raw: dict[str, Any]) -> Iterator[Difference]:
    """Versions in prose and in the list of releases."""
    for file, what, hint in verify_copies.differences(root, raw):
        yield Difference(file, what, hint)


def generated(root: Path, raw: dict[str, Any]) -> Iterator[Difference]:
    """Pages written by a command, and versions in the GitOps examples."""
    for file, what, hint in verify_generated.differences(root, raw):
        yield Difference(file, what, hint)


def _pin(what: str, hint: str) -> Difference:
    return Difference("versions.yaml", what, hint)


def _bare(version: str) -> str:
    return version.removeprefix("v")


def _lines(file: Path) -> Iterator[tuple[int, str]]:
    """Numbered lines that are neither empty nor comments."""
    for number, line in enumerate(file.read_text().splitlines(), 1):
        if line.strip() and not line.lstrip().startswith("#"):
            yield number, line.strip()
