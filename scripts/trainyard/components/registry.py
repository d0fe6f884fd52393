"""Reads the registry of components: data on each part of the release for the chart, the laboratory and the docs.

Packaging, CRDs, permissions of members, network, uninstallation, diagnosis, verdicts on upgrades, tests of
permissions and placement, and docs/components.md use it; the chart gets it as data (`files/components.json`, written
when it is packaged). How to add one: docs/contributing/add-a-component.md.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from trainyard.errors import TrainyardError
from trainyard.kinds import registry as kinds
from trainyard.paths import ROOT

FOLDER = ROOT / "charts"
FILE = "component.yaml"  # in the folder of each component
RELEASES = "trainyard/releases.yaml"
UMBRELLA = "trainyard"  # the chart itself: the only entry that is not a dependency of it
MONITORING = "monitoring"  # its chart scrapes every component's endpoints


@dataclass(frozen=True)
class Crds:
    """CRDs in the component's own module, which Helm installs once and our hook updates on an upgrade."""

    path: str  # folder in the module
    file: str  # file name, with {plural}
    group: str
    plurals: tuple[str, ...]

    @property
    def names(self) -> tuple[str, ...]:
        """Names such as `workflows.argoproj.io`."""
        return tuple(f"{plural}.{self.group}" for plural in self.plurals)

    @property
    def files(self) -> tuple[str, ...]:
        """Paths in the module."""
        return tuple(f"{self.path}/{self.file.format(plural=plural)}" for plural in self.plurals)


@dataclass(frozen=True)
class Component:
    """One part of the release.

    Args:
        name: name of its folder, its chart and its block of values.
        about: one sentence on what it is; the description of its block of values.
        optional: whether it is disabled by default.
        pin: its name in versions.yaml, under components and tools; without an entry, its chart's appVersion is used.
        chart: source of an upstream chart: `module` and `path` of a tool set, or `repository`; empty: our own chart.
        images: names in versions.yaml of the images that its pods run.
        crds: CRDs that our hook updates; None if Helm does that, or if there are none.
        viewers: RBAC rules on its kinds for everyone in a team, in the team's namespace.
        members: additional RBAC rules for those who may run jobs.
        network: what teams' pods can reach: `policy` (name of the network policy), `name` of its pods, `port`.
        placement: its workloads that run on other nodes than CPU nodes, with `gpu` or `every`.
        stationary: its Deployments that no autoscaler may evict, as they serve data that jobs are using.
        permissions: far-reaching permissions: `role`, `grants`, `reason`; a grant on {resource} is one on each kind of
            job that the component brings, or on all kinds.
        unrestricted: pods that Pod Security's level "restricted" would reject: `pod`, `violations`, `reason`.
        removal: `ends`: kinds (group/version/plural) whose objects end before removal; `purges`: kinds that a purge
            removes; `leaves`: `secrets` by name and `configmaps` by label that it creates without Helm.
        metrics: endpoints for Prometheus in the release's namespace: `name` (the label job), `pods` (labels), `port`;
            `path` and `scheme` if they are not /metrics and http; `honor`: the series' own labels have precedence, and
            the pod is not added; `labels`: additional labels, from labels of the pod.
        diagnosis: `kinds` (short name to resource) that explain failures; `pods`: parts of names whose logs are useful.
        support: end of support of its pin, in the format that support.yaml has for other pins.
        upgrades: verdicts; see trainyard_dev/chart/verdicts.py.
    """

    name: str
    about: str
    optional: bool = False
    pin: str = ""
    chart: Mapping[str, str] = field(default_factory=dict)
    images: tuple[str, ...] = ()
    crds: Crds | None = None
    viewers: tuple[dict[str, Any], ...] = ()
    members: tuple[dict[str, Any], ...] = ()
    network: Mapping[str, Any] = field(default_factory=dict)
    placement: Mapping[str, str] = field(default_factory=dict)
    stationary: tuple[str, ...] = ()
    permissions: tuple[dict[str, Any], ...] = ()
    unrestricted: tuple[dict[str, Any], ...] = ()
    removal: Mapping[str, Any] = field(default_factory=dict)
    diagnosis: Mapping[str, Any] = field(default_factory=dict)
    metrics: tuple[dict[str, Any], ...] = ()
    support: Mapping[str, Any] = field(default_factory=dict)
    upgrades: tuple[dict[str, Any], ...] = ()

    @property
    def is_ours(self) -> bool:
        """Whether its chart is in charts/."""
        return not self.chart


_KEYS = {one.name for one in fields(Component)} - {"name"}
# Allowed keys of an entry's mappings.
_INSIDE = {
    "chart": {"module", "path", "repository"},
    "network": {"policy", "name", "port"},
    "removal": {"ends", "purges", "leaves"},
    "diagnosis": {"kinds", "pods"},
    "crds": {"path", "file", "group", "plurals"},
}
_ENDPOINT = {"name", "pods", "port", "path", "scheme", "honor", "labels"}  # allowed keys of each of `metrics`


def load(folder: Path = FOLDER) -> tuple[Component, ...]:
    """All entries below a folder, by name.

    Raises:
        TrainyardError: an entry can't be read, or has an unknown key.
    """
    return tuple(_component(file) for file in sorted(folder.glob(f"*/{FILE}")))


@cache
def all_components() -> tuple[Component, ...]:
    """All entries, including the chart itself."""
    return load()


def dependencies() -> tuple[Component, ...]:
    """All entries except the chart itself."""
    return tuple(one for one in all_components() if one.name != UMBRELLA)


def find(name: str) -> Component:
    """The entry with this name. Raises KeyError."""
    return {one.name: one for one in all_components()}[name]


def pin_of(name: str) -> str:
    """Key of a chart's version in versions.yaml, whether the chart is in the registry or not."""
    return next((one.pin for one in all_components() if one.name == name), name)


def left_over(kind: str) -> set[str]:
    """Objects that components leave behind: names of `secrets`, or labels of `configmaps`."""
    found = ((one.removal.get("leaves") or {}).get(kind) or () for one in all_components())
    return {name for names in found for name in names}


def crd_names() -> tuple[str, ...]:
    """All CRDs that our hook updates: Helm installs them without its annotations."""
    return tuple(name for one in all_components() if one.crds for name in one.crds.names)


def rendered() -> list[dict[str, Any]]:
    """The entries as the chart needs them."""
    return [
        {
            "name": one.name,
            "viewers": list(one.viewers),
            "members": list(one.members),
            "network": dict(one.network),
            "ends": list(one.removal.get("ends") or ()),
            "crds": bool(one.crds),
            "validated": _is_validated(one.name),
        }
        for one in dependencies()
    ]


def _is_validated(name: str) -> bool:
    defines = f'define "trainyard.validate.{name}"'
    return any(defines in file.read_text() for file in (FOLDER / name / "umbrella").glob("_*.tpl"))


def endpoints() -> list[dict[str, Any]]:
    """All metrics endpoints of components for the scrape configuration, by name."""
    found = [
        {"component": one.name, "path": "/metrics", "scheme": "http", "honor": False, "labels": {}} | endpoint
        for one in all_components()
        for endpoint in one.metrics
    ]
    return sorted(found, key=lambda one: str(one["name"]))


def _component(file: Path) -> Component:
    name = file.parent.name
    data, where = yaml.safe_load(file.read_text()), f"charts/{name}/{FILE}"
    if not isinstance(data, dict) or not data.get("about"):
        raise TrainyardError("an entry says in `about` what the component is", where=where)
    for place, known in (("", _KEYS), *_INSIDE.items()):
        unknown = sorted(set(data.get(place) or {} if place else data) - known)
        if unknown:
            what = f"nothing knows the key {f'{place}.' if place else ''}{unknown[0]}"
            raise TrainyardError(what, where=where, hint=f"use one of: {', '.join(sorted(known))}")
    for endpoint in data.get("metrics") or ():
        unknown = sorted(set(endpoint) - _ENDPOINT) or sorted({"name", "pods", "port"} - set(endpoint))
        if unknown:
            what = f"an endpoint of metrics has name, pods and port, and not {unknown[0]}"
            if unknown[0] not in endpoint:
                what = f"an endpoint of metrics lacks {unknown[0]}"
            hint = f"use: {', '.join(sorted(_ENDPOINT))}"
            raise TrainyardError(what, where=where, hint=hint)
    for entry in data.get("permissions") or ():
        entry["grants"] = [one for text in entry["grants"] for one in _granted(text, name)]
    lists = {key: tuple(value) for key, value in data.items() if isinstance(value, list)}
    return Component(**{"pin": name, **data, **lists, "name": name, "crds": _crds(name, data.get("crds"))})


def _granted(text: str, name: str) -> list[str]:
    if "{resource}" not in text:
        return [text]
    return [text.format(resource=kind.resource) for kind in kinds.of_part(name) or kinds.KINDS]


def _crds(name: str, data: dict[str, Any] | None) -> Crds | None:
    if not data:
        return None
    brought = kinds.of_part(name)  # the registry of kinds lists an operator's kinds
    group = data.get("group") or brought[0].group
    plurals = data.get("plurals") or [kind.plural for kind in brought]
    return Crds(data["path"], data["file"], group, tuple(plurals))
