"""Pipelines, versions and experiments as ConfigMaps of the team, written with the caller's own token."""

from __future__ import annotations

import base64
import gzip
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from kfp_api.errors import Code, RefusalError
from trainyard.kube import Kube, KubeError

KIND = "trainyard.io/kfp"  # label: which of the kinds a ConfigMap holds
PIPELINE = "trainyard.io/kfp-pipeline"  # label of versions: their pipeline's digest
EXPERIMENT_KIND, PIPELINE_KIND, VERSION_KIND = "experiment", "pipeline", "version"
LARGEST = 1 << 20  # bytes of a pipeline, as text
CONTENT = "spec"  # key of the packed text

Object = dict[str, Any]


@dataclass(frozen=True)
class Record:
    """One ConfigMap. `data` is its texts, `content` what it packs."""

    name: str
    data: Mapping[str, str]
    created: str = ""
    uid: str = ""
    labels: Mapping[str, str] = field(default_factory=dict)
    packed: str = ""

    def get(self, key: str) -> str:
        """One of its texts, "" without it."""
        return str(self.data.get(key, ""))

    def content(self) -> str:
        """The packed text. Raises RefusalError: a member may have written anything there."""
        try:
            unpack = zlib.decompressobj(wbits=31)
            found = unpack.decompress(base64.b64decode(self.packed), LARGEST + 1)
            if len(found) > LARGEST or not unpack.eof:
                raise ValueError("too large")
            return found.decode()
        except (ValueError, zlib.error):
            raise RefusalError(
                Code.FAILED_PRECONDITION, f"ConfigMap {self.name} holds no pipeline; upload it again"
            ) from None


def _path(kube: Kube, name: str = "") -> str:
    return kube.path("v1", "configmaps", name)


def _read(obj: Object) -> Record:
    meta = obj["metadata"]
    return Record(
        meta["name"],
        obj.get("data") or {},
        meta.get("creationTimestamp", ""),
        meta.get("uid", ""),
        meta.get("labels") or {},
        (obj.get("binaryData") or {}).get(CONTENT, ""),
    )


def listed(kube: Kube, kind: str, **labels: str) -> list[Record]:
    """All records of a kind with these labels."""
    chosen = {KIND: kind} | labels
    return [_read(obj) for obj in kube.list(_path(kube), labelSelector=",".join(f"{k}={v}" for k, v in chosen.items()))]


def find(kube: Kube, kind: str, name: str) -> Record | None:
    """The record of that name; None for none, and for a ConfigMap of something else."""
    obj = kube.find(_path(kube, name))
    found = _read(obj) if obj else None
    return found if found and found.labels.get(KIND) == kind else None


def create(
    kube: Kube, kind: str, name: str, data: Mapping[str, str], *, content: str = "", owner: Record | None = None,
    labels: Mapping[str, str] | None = None, taken: str = "",
) -> Record:  # fmt: skip
    """Makes a record, atomically: of two callers, one gets ALREADY_EXISTS with the message `taken`."""
    meta: Object = {"name": name, "namespace": kube.namespace, "labels": {KIND: kind, **(labels or {})}}
    if owner:
        meta["ownerReferences"] = [{"apiVersion": "v1", "kind": "ConfigMap", "name": owner.name, "uid": owner.uid}]
    obj: Object = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": dict(data)}
    if content:
        obj["binaryData"] = {CONTENT: base64.b64encode(gzip.compress(content.encode(), mtime=0)).decode()}
    try:
        return _read(kube.create(obj))
    except KubeError as error:
        if error.status == 409:
            raise RefusalError(Code.ALREADY_EXISTS, taken) from None
        raise


def change(kube: Kube, name: str, data: Mapping[str, str]) -> Record:
    """Changes texts of a record."""
    return _read(kube.patch(_path(kube, name), {"data": dict(data)}))


def remove(kube: Kube, name: str) -> bool:
    """Removes a record and those that it owns. False if there was none."""
    return kube.delete(_path(kube, name))
