"""Compares two sets of objects: added, changed and removed objects, changed images and CRD fields."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from trainyard.chart.helm import containers, pod_specs
from trainyard.chart.release.installed import HOOK, Objects
from trainyard.observe.listing import some

KEEP = "helm.sh/resource-policy"
# Labels with a chart's version: they change in every object and are irrelevant.
LABELS = ("helm.sh/chart", "app.kubernetes.io/version", "app", "chart")
STAMPS = {f"metadata.labels.{label}" for label in LABELS} | {
    f"spec.template.metadata.labels.{label}" for label in LABELS[:2]
}
ROLLS = {"Deployment", "StatefulSet", "DaemonSet"}
# Immutable fields: an upgrade that changes one fails half-way.
FIXED = {
    "ClusterRoleBinding": ("roleRef",),
    "DaemonSet": ("spec.selector",),
    "Deployment": ("spec.selector",),
    "Job": ("spec.template", "spec.selector", "spec.completions"),
    "PersistentVolume": ("spec.nfs",),
    "PersistentVolumeClaim": ("spec.accessModes", "spec.storageClassName", "spec.volumeName"),
    "PriorityClass": ("value", "preemptionPolicy"),
    "RoleBinding": ("roleRef",),
    "Service": ("spec.clusterIP",),
    "StatefulSet": ("spec.podManagementPolicy", "spec.selector", "spec.serviceName", "spec.volumeClaimTemplates"),
    "StorageClass": ("parameters", "provisioner", "reclaimPolicy", "volumeBindingMode"),
}


@dataclass(frozen=True)
class Change:
    """Change of one object. `kind` is added, changed, removed or kept (gone from the release, left in the cluster)."""

    kind: str
    object: str
    fields: tuple[str, ...] = ()
    restarts: bool = False  # whether its pods are replaced
    hook: bool = False

    @property
    def refused(self) -> tuple[str, ...]:
        """Changed fields that are immutable. Hooks are exempt, since their objects are created again."""
        fixed = () if self.hook else FIXED.get(self.object.partition(" ")[0], ())
        below = tuple(word for top in fixed for word in (f"{top}.", f"{top}["))
        return tuple(path for path in self.fields if path in fixed or path.startswith(below))


def name_of(obj: dict[str, Any]) -> str:
    """Name such as `Deployment trainyard-system/trainyard-nfs`, with the group for API groups that are not built in."""
    meta, group = obj["metadata"], obj["apiVersion"].partition("/")[0]
    plain = "." not in group or group.endswith(".k8s.io")
    kind = obj["kind"] if plain else f"{obj['kind']}.{group}"
    return f"{kind} {meta['namespace']}/{meta['name']}" if meta.get("namespace") else f"{kind} {meta['name']}"


def differing(old: Any, new: Any, path: str = "") -> Iterator[str]:
    """Paths of fields that differ. Lists whose entries have names are compared by name."""
    if isinstance(old, dict) and isinstance(new, dict):
        for key in sorted({*old, *new}, key=str):
            here = f"{path}.{key}" if path else str(key)
            if key not in old or key not in new:
                yield here
            else:
                yield from differing(old[key], new[key], here)
    elif isinstance(old, list) and isinstance(new, list):
        mine, other = _named(old), _named(new)
        if mine is None or other is None:
            if old != new:
                yield path
            return
        for key in sorted({*mine, *other}):
            if mine.get(key) != other.get(key):
                yield from differing(mine.get(key), other.get(key), f"{path}[{key}]")
    elif old != new:
        yield path


def _named(items: list[Any]) -> dict[str, Any] | None:
    if all(isinstance(item, dict) and isinstance(item.get("name"), str) for item in items):
        found = {item["name"]: item for item in items}
        return found if len(found) == len(items) else None
    return None


def changes(old: Objects, new: Objects) -> list[Change]:
    """Changes of an upgrade, ordered: removed, added, changed, kept. CRDs: see `crd_changes`."""
    before, after = ({name_of(obj): obj for obj in objects if not is_crd(obj)} for objects in (old, new))
    found = []
    for name in sorted({*before, *after}):
        mine, other = before.get(name), after.get(name)
        hook = HOOK in ((mine or other)["metadata"].get("annotations") or {})  # type: ignore[index]
        if other is None:
            kept = (mine["metadata"].get("annotations") or {}).get(KEEP) == "keep"  # type: ignore[index]
            found.append(Change("kept" if kept else "removed", name, hook=hook))
        elif mine is None:
            found.append(Change("added", name, hook=hook))
        else:
            fields = tuple(path for path in differing(mine, other) if path not in STAMPS)
            if fields:
                rolls = other["kind"] in ROLLS and any(path.startswith("spec.template") for path in fields)
                found.append(Change("changed", name, fields, rolls, hook))
    order = ("removed", "added", "changed", "kept")
    return sorted(found, key=lambda change: (order.index(change.kind), change.object))


def is_crd(obj: dict[str, Any]) -> bool:
    """Whether the object is a CustomResourceDefinition."""
    return obj["kind"] == "CustomResourceDefinition"


def images(objects: Objects) -> dict[str, set[str]]:
    """Image tags of all containers, by repository."""
    found: dict[str, set[str]] = {}
    for obj in objects:
        for spec in pod_specs(obj):
            for container in containers(spec):
                repository, _, tag = container["image"].rpartition(":")
                found.setdefault(repository, set()).add(tag)
    return found


def image_moves(old: Objects, new: Objects) -> list[tuple[str, str, str]]:
    """(repository, tags before, tags after) of each image that differs; "" if it isn't used."""
    before, after = images(old), images(new)
    rows = []
    for name in sorted({*before, *after}):
        mine, other = (", ".join(sorted(held.get(name, ()))) for held in (before, after))
        rows += [(name, mine, other)] if mine != other else []
    return rows


def crd_changes(old: Objects, new: Objects) -> dict[str, str]:
    """Effect of an upgrade on each CRD, in words; unchanged CRDs are omitted."""
    before, after = ({obj["metadata"]["name"]: obj for obj in objects if is_crd(obj)} for objects in (old, new))
    said = {}
    for name, crd in sorted(after.items()):
        if name not in before:
            said[name] = "added"
            continue
        mine, other = _fields(before[name]), _fields(crd)
        words = []
        gone, come = sorted(set(mine) - set(other)), sorted(set(other) - set(mine))
        for sign, versions in (("without version", gone), ("with version", come)):
            words += [f"{sign} {', '.join(versions)}"] if versions else []
        for version in sorted(set(mine) & set(other)):
            for sign, paths in (("+", other[version] - mine[version]), ("-", mine[version] - other[version])):
                outermost = sorted(path for path in paths if path.rpartition(".")[0] not in paths)
                words += [f"{sign}{version} {some(outermost, 3)}"] if paths else []
        if words:
            said[name] = "; ".join(words)
    return said


def _fields(crd: dict[str, Any]) -> dict[str, set[str]]:
    """Paths of all fields, by version."""
    return {one["name"]: set(_paths(one["schema"]["openAPIV3Schema"], "")) for one in crd["spec"]["versions"]}


def _paths(schema: dict[str, Any], path: str) -> Iterator[str]:
    for name, below in (schema.get("properties") or {}).items():
        here = f"{path}.{name}" if path else name
        yield here
        yield from _paths(below, here)
    for key in ("items", "additionalProperties"):
        if isinstance(schema.get(key), dict):
            yield from _paths(schema[key], path)
