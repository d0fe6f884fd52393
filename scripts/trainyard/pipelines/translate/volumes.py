"""Volumes of a step: claims, Secrets, ConfigMaps, empty and ephemeral ones."""

from typing import Any

from trainyard.pipelines.ir.model import Component
from trainyard.pipelines.translate.context import Context, Object
from trainyard.pipelines.translate.references import References

FIELDS = (
    "pvcMount",
    "secretAsVolume",
    "configMapAsVolume",
    "emptyDirMounts",
    "genericEphemeralVolume",
    "enabledSharedMemory",
)


def add(
    ctx: Context, component: Component, references: References, template: Object, field: str, one: dict[str, Any]
) -> None:
    """Adds one volume of kind `field` and its mount; an existing volume is mounted once more."""
    source, name, extra = _source(ctx, component, references, field, one)
    known = template["volumes"]
    for volume in known:
        if {k: v for k, v in volume.items() if k != "name"} == source and field != "emptyDirMounts":
            name = volume["name"]
            break
    else:
        name = name or f"vol-{len(known)}"
        if any(volume["name"] == name for volume in known):
            raise ctx.refuse(f"two volumes of the name {name}", component, hint="give them different names")
        known.append({"name": name, **source})
    path = one.get("mountPath") or "/dev/shm"
    template["container"]["volumeMounts"].append({"name": name, "mountPath": path, **extra})


def _source(
    ctx: Context, component: Component, references: References, field: str, one: dict[str, Any]
) -> tuple[Object, str, Object]:
    """The volume, its name if kfp gives one, and its mount's fields other than the path."""
    optional = {"optional": one["optional"]} if "optional" in one else {}
    if field == "pvcMount":
        claim = references.name(_claim(one), one.get("constant", ""))
        extra = {"subPath": one["subPath"]} if one.get("subPath") else {}
        return {"persistentVolumeClaim": {"claimName": claim}}, "", extra
    if field == "secretAsVolume":
        secret = references.name(one.get("secretNameParameter"), one.get("secretName", ""))
        return {"secret": {"secretName": secret, **optional}}, "", {}
    if field == "configMapAsVolume":
        config_map = references.name(one.get("configMapNameParameter"), one.get("configMapName", ""))
        return {"configMap": {"name": config_map, **optional}}, "", {}
    if field == "emptyDirMounts":
        options = {key: one[key] for key in ("medium", "sizeLimit") if one.get(key)}
        return {"emptyDir": options}, one.get("volumeName", ""), {}
    if field == "enabledSharedMemory":
        size = {"sizeLimit": one["size"]} if one.get("size") else {}
        return {"emptyDir": {"medium": "Memory", **size}}, one.get("volumeName", "shm"), {}
    spec: Object = {
        "accessModes": list(one.get("accessModes", ())),
        "resources": {"requests": {"storage": one["size"]}},
    }
    if not one.get("defaultStorageClass"):
        spec["storageClassName"] = one.get("storageClassName", "")
    metadata = {
        kind: dict(one["metadata"][kind]) for kind in ("labels", "annotations") if one.get("metadata", {}).get(kind)
    }
    claim_template: Object = {"spec": spec, **({"metadata": metadata} if metadata else {})}
    return {"ephemeral": {"volumeClaimTemplate": claim_template}}, one.get("volumeName", ""), {}


def _claim(one: dict[str, Any]) -> dict[str, Any] | None:
    """A claim's reference: newer compilers write pvcNameParameter in addition to the older fields."""
    if "pvcNameParameter" in one:
        return one["pvcNameParameter"]
    for key in ("taskOutputParameter", "componentInputParameter"):
        if key in one:
            return {key: one[key]}
    return None
