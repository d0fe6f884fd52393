"""What remains when a release is uninstalled: data, claims, Secrets, namespaces of teams, CRDs."""

from dataclasses import dataclass, field
from typing import Any

from trainyard.chart.release import node_folders
from trainyard.chart.release.compare import KEEP
from trainyard.chart.release.installed import Installed
from trainyard.components.registry import crd_names, left_over
from trainyard_agent.install.crds import VERSION as CRD_VERSION

PROVISIONER = "trainyard.io/nfs"
PROVISIONED_BY = "pv.kubernetes.io/provisioned-by"
OWNER = "meta.helm.sh/release-name"
APPLIED_BY = "trainyard.io/applied-by"  # label of the release's objects that remain


@dataclass(frozen=True)
class Claim:
    """A claim of the platform: of a team, of the release itself, or of anyone on the platform's storage classes."""

    namespace: str
    name: str
    size: str
    volume: str

    def __str__(self) -> str:
        return f"claim {self.namespace}/{self.name}, {self.size}"


@dataclass(frozen=True)
class Volume:
    """A PersistentVolume of one of the claims, or one that outlived its claim."""

    name: str
    size: str
    policy: str
    nfs: str  # server:path, "" for other volumes
    provisioned: bool  # whether the release's own provisioner made it

    def __str__(self) -> str:
        return f"volume {self.name}, {self.size}, {self.policy}" + (f", {self.nfs}" if self.nfs else "")


@dataclass(frozen=True)
class Inventory:
    """Everything that remains, in the order in which a purge removes it."""

    teams: list[str] = field(default_factory=list)
    claims: list[Claim] = field(default_factory=list)
    volumes: list[Volume] = field(default_factory=list)
    secrets: list[str] = field(default_factory=list)  # in the release's namespace
    caches: list[str] = field(default_factory=list)  # ConfigMaps there with results of pipeline steps
    crds: list[str] = field(default_factory=list)
    folders: list[str] = field(default_factory=list)  # on every node, as long as the release exists

    def lines(self) -> list[str]:
        """One line for each item."""
        rows = [f"namespace {team}" for team in self.teams]
        rows += [str(one) for one in (*self.claims, *self.volumes)]
        rows += [f"Secret {name}" for name in self.secrets]
        rows += [f"cache {name} of a pipeline" for name in self.caches]
        rows += [f"CRD {name}" for name in self.crds]
        return rows + [f"contents of {path} on each node" for path in self.folders]


def remains(installed: Installed) -> Inventory:
    """Queries the cluster. Works before and after the release is uninstalled."""
    kubectl, name, space = installed.kubectl, installed.name, installed.namespace
    label = f"{APPLIED_BY}={name}"
    teams = sorted(item["metadata"]["name"] for item in kubectl.get("namespaces", "-l", label))
    volumes = {item["metadata"]["name"]: item for item in kubectl.get("pv")}
    claims = [
        item for item in kubectl.get("pvc", "-A") if _is_ours(item, volumes, {space, *teams}) and not goes(item, name)
    ]
    bound = {item["spec"].get("volumeName") for item in claims}
    outlived = {key for key, item in volumes.items() if _left_over(item, name, {*teams, space})}
    outlived -= {key for key, item in volumes.items() if goes(item, name)}
    return Inventory(
        teams=teams,
        claims=[_claim(item) for item in claims],
        volumes=[_volume(volumes[key]) for key in sorted((bound | outlived) & set(volumes))],
        secrets=sorted(item["metadata"]["name"] for item in kubectl.get("secrets", "-n", space) if _made(item, name)),
        caches=sorted(
            item["metadata"]["name"]
            for mark in left_over("configmaps")
            for item in kubectl.get("configmaps", "-n", space, "-l", mark)
        ),
        crds=sorted(
            item["metadata"]["name"] for item in kubectl.get("crd", "--show-managed-fields") if _is_our_crd(item, name)
        ),
        folders=node_folders.written(installed),
    )


def goes(obj: dict[str, Any], release: str) -> bool:
    """Whether Helm removes the object with the release."""
    notes = obj["metadata"].get("annotations") or {}
    return notes.get(OWNER) == release and notes.get(KEEP) != "keep"


def _is_ours(claim: dict[str, Any], volumes: dict[str, dict[str, Any]], spaces: set[str]) -> bool:
    volume = volumes.get(claim["spec"].get("volumeName", ""), {})
    return claim["metadata"]["namespace"] in spaces or (bool(volume) and _provisioned(volume))


def _provisioned(volume: dict[str, Any]) -> bool:
    return (volume["metadata"].get("annotations") or {}).get(PROVISIONED_BY) == PROVISIONER


def _left_over(volume: dict[str, Any], release: str, spaces: set[str]) -> bool:
    """Whether the volume is one of Helm's static volumes, or the provisioner's without a claim."""
    owned = (volume["metadata"].get("annotations") or {}).get(OWNER) == release
    loose = _provisioned(volume) and volume["status"].get("phase") in ("Released", "Available", "Failed")
    return owned or loose or (volume["spec"].get("claimRef") or {}).get("namespace") in spaces


def _made(secret: dict[str, Any], release: str) -> bool:
    """Whether the Secret was made for the release and is kept; not a site's own, nor Helm's records of revisions."""
    meta = secret["metadata"]
    kept = (meta.get("annotations") or {}).get(OWNER) == release and not goes(secret, release)
    return kept or meta["name"] in left_over("secrets") or (meta.get("labels") or {}).get(APPLIED_BY) == release


def _is_our_crd(crd: dict[str, Any], release: str) -> bool:
    """Whether the CRD is ours: by Helm's annotation; for those of `crds/`, by name, and version or Helm's apply."""
    meta = crd["metadata"]
    notes = meta.get("annotations") or {}
    if meta["name"] in crd_names():
        return CRD_VERSION in notes or any(one.get("manager") == "helm" for one in meta.get("managedFields") or [])
    return notes.get(OWNER) == release


def _claim(item: dict[str, Any]) -> Claim:
    spec, meta = item["spec"], item["metadata"]
    size = spec["resources"]["requests"].get("storage", "?")
    return Claim(meta["namespace"], meta["name"], size, spec.get("volumeName", ""))


def _volume(item: dict[str, Any]) -> Volume:
    spec = item["spec"]
    nfs = spec.get("nfs") or {}
    place = f"{nfs['server']}:{nfs['path']}" if nfs else ""
    policy = spec["persistentVolumeReclaimPolicy"]
    return Volume(item["metadata"]["name"], spec["capacity"]["storage"], policy, place, _provisioned(item))
