"""Where the chart's parts come from: folders of this repository and the pinned Go modules of upstream projects."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from trainyard.chart.crds import ARGO_CRDS, OPERATOR_CRDS
from trainyard.errors import TrainyardError
from trainyard.paths import CHART, ROOT
from trainyard_dev import tools

UMBRELLA = CHART


@dataclass(frozen=True)
class Upstream:
    """A chart inside a Go module: the set of versions.yaml that pins the module, and the folder in it."""

    name: str
    tool: str
    path: str


UPSTREAM = (
    Upstream("volcano", "volcano", "installer/helm/chart/volcano"),
    Upstream("nvidia-device-plugin", "device-plugin", "deployments/helm/nvidia-device-plugin"),
)


def own() -> list[str]:
    """Our own charts among the umbrella's dependencies."""
    listed = yaml.safe_load((UMBRELLA / "Chart.yaml").read_text())["dependencies"]
    return [one["name"] for one in listed if (ROOT / "charts" / one["name"] / "Chart.yaml").exists()]


def chart_folder(name: str) -> Path:
    """The unchanged chart of a part, ours or upstream's."""
    for part in UPSTREAM:
        if part.name == name:
            return tools.module_dir(part.tool) / part.path
    return ROOT / "charts" / name


def crd_files() -> dict[str, list[Path]]:
    """By chart of ours, the CRD files in its module, of the kinds that we install. Argo's are those without schemas:
    the full ones would fill half of a release's Secret."""
    operator = tools.module_dir("training-operator") / "manifests" / "base" / "crds"
    argo = tools.module_dir("argo") / "manifests" / "base" / "crds" / "minimal"
    return {
        "training-operator": [operator / f"kubeflow.org_{kind}.yaml" for kind in OPERATOR_CRDS],
        "argo": [argo / f"argoproj.io_{kind}.yaml" for kind in ARGO_CRDS],
    }


def upstream_values(name: str) -> dict[str, Any]:
    """Default values of a part, as its own values.yaml has them."""
    return yaml.safe_load((chart_folder(name) / "values.yaml").read_text()) or {}


def profiles() -> list[str]:
    """Names of the profiles, in alphabetical order."""
    return sorted(file.stem for file in (UMBRELLA / "profiles").glob("*.yaml"))


def profile_file(profile: str) -> Path:
    """Values file of a profile. Raises TrainyardError for a name that is none."""
    file = UMBRELLA / "profiles" / f"{profile}.yaml"
    if not file.exists():
        raise TrainyardError(f"there is no profile {profile!r}", hint=f"use one of: {', '.join(profiles())}")
    return file
