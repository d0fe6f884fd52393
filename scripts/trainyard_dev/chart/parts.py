"""Sources of the chart's parts: folders of this repository and the pinned Go modules of upstream projects."""

import shutil
from pathlib import Path
from typing import Any

import yaml

from trainyard.components import Component, all_components, dependencies
from trainyard.errors import TrainyardError
from trainyard.paths import CHART, ROOT
from trainyard_dev import tools

UMBRELLA = CHART
# Example values for settings that a profile leaves to the site, used by renderings here.
ASKED = ROOT / "manifests" / "sites"
# Files in a component's folder that don't belong to its chart.
BESIDE = {"README.md", "component.yaml", "icon.svg", "images", "patches", "releases.yaml", "tests", "tools", "umbrella"}


def upstream() -> list[Component]:
    """Components whose chart is in a Go module of upstream's."""
    return [one for one in dependencies() if "module" in one.chart]


def own() -> list[str]:
    """Our own charts among the umbrella's dependencies."""
    return [one.name for one in dependencies() if one.is_ours]


def chart_folder(name: str) -> Path:
    """The unchanged chart of a part, ours or upstream's."""
    for one in upstream():
        if one.name == name:
            return tools.module_dir(one.chart["module"]) / one.chart["path"]
    return ROOT / "charts" / name


def copy(source: Path, target: Path) -> None:
    """Copy a chart of ours without the other files in its component's folder."""
    shutil.copytree(source, target, ignore=lambda folder, names: BESIDE & {*names} if folder == str(source) else ())


def crd_files() -> dict[str, list[Path]]:
    """CRD files from each chart's module that the chart includes. Raises TrainyardError for a missing one."""
    return {one.name: [_crd(one, file) for file in one.crds.files] for one in all_components() if one.crds}


def _crd(one: Component, file: str) -> Path:
    path = tools.module_dir(one.pin) / file
    if not path.exists():
        hint = "correct `crds` in its component.yaml, or the kind's plural in kinds/registry.py"
        raise TrainyardError(f"the module of {one.name} has no CRD file {path.name}", hint=hint)
    return path


def upstream_values(name: str) -> dict[str, Any]:
    """Default values of a part, from its own values.yaml."""
    return yaml.safe_load((chart_folder(name) / "values.yaml").read_text()) or {}


def profiles() -> list[str]:
    """Names of the profiles, in alphabetical order."""
    return sorted(file.stem for file in (UMBRELLA / "profiles").glob("*.yaml"))


def profile_file(profile: str) -> Path:
    """Values file of a profile. Raises TrainyardError for an unknown name."""
    file = UMBRELLA / "profiles" / f"{profile}.yaml"
    if not file.exists():
        raise TrainyardError(f"unknown profile {profile!r}", hint=f"use one of: {', '.join(profiles())}")
    return file


def profile_files(profile: str) -> list[Path]:
    """Values files that render a profile: its own, and an example of a site's. Raises TrainyardError as above."""
    asked = ASKED / f"{profile}.yaml"
    return [profile_file(profile), *([asked] if asked.exists() else [])]
