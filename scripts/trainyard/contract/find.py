"""Loading of the contract from a file, the cluster or the chart's own defaults."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

from trainyard.contract import read, render
from trainyard.contract.model import ASSUMED, CLUSTER, Contract
from trainyard.errors import TrainyardError, UsageError

if TYPE_CHECKING:
    from trainyard.kube import Kube

VARIABLE = "TRAINYARD_CONTRACT"
CONFIG_MAP, SYSTEM = "trainyard-contract", "trainyard-system"
WHEELS = "wheels"  # key of the ConfigMap: names of the wheels in the store that runs may install
HINT = "pass your values.yaml, the rendered chart, or the data of ConfigMap trainyard-contract"
Raw = dict[str, Any]


def find(file: str | Path | None = None, kube: Kube | None = None) -> Contract:
    """The contract to use: from `file`, else $TRAINYARD_CONTRACT, else the cluster, else the chart's defaults.

    If the cluster can't be queried, the defaults are used; the result's `source` tells which contract it is.
    """
    named = file or os.environ.get(VARIABLE)
    if named:
        return load(Path(named))
    if kube is not None:
        try:
            return live(kube)
        except TrainyardError:
            return defaults()
    return defaults()


def load(file: Path) -> Contract:
    """The contract of a file: values (rendered by Helm), a rendered chart, the ConfigMap, or its data.

    Raises:
        UsageError: the file can't be read or holds no contract.
    """
    try:
        documents = [one for one in yaml.safe_load_all(file.read_text(encoding="utf-8")) if one is not None]
    except OSError as error:
        raise UsageError(f"the contract can't be read: {error.strerror}", where=str(file), hint=HINT) from None
    except UnicodeDecodeError:
        raise UsageError("the contract is not text", where=str(file), hint=HINT) from None
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        line = getattr(getattr(error, "problem_mark", None), "line", None)
        where = str(file) if line is None else f"{file}:{line + 1}"
        raise UsageError("the contract is not YAML", where=where, hint="correct that line") from None
    for document in documents:
        if isinstance(document, dict) and (raw := _raw(document, str(file))):
            return read.contract(raw, str(file))
    raise UsageError("the file contains no contract", where=str(file), hint=HINT)


def system(env: Mapping[str, str] = os.environ) -> str:
    """Namespace of the release: $TRAINYARD_SYSTEM, else the default."""
    return env.get("TRAINYARD_SYSTEM") or SYSTEM


def live(kube: Kube) -> Contract:
    """The contract that the chart published in the cluster. Raises TrainyardError if it can't be read."""
    namespace = system()
    found = kube.find(kube.path("v1", "configmaps", CONFIG_MAP, namespace=namespace))
    if found is None:
        what = f"the cluster has no ConfigMap {CONFIG_MAP} in {namespace}"
        raise TrainyardError(
            what,
            where=kube.host,
            hint="set TRAINYARD_SYSTEM to the namespace of the release, or pass --contract FILE",
        )
    return read.contract(_published(found, kube.host), f"{CLUSTER} {kube.host}")


def of_objects(objects: Iterable[Raw]) -> Contract:
    """The contract that a rendered chart publishes."""
    published = (one for one in objects if (one["kind"], one["metadata"]["name"]) == ("ConfigMap", CONFIG_MAP))
    where = "the rendered chart"
    return read.contract(_published(next(published), where), where)


def defaults() -> Contract:
    """The contract of the chart's own values: default queue, classes and buckets; no team, and GPUs of unknown type."""
    found = read.contract(render.defaults(), ASSUMED)
    return replace(found, pools=tuple(replace(pool, cuda=False) for pool in found.pools))


def _raw(document: Raw, where: str) -> Raw | None:
    if document.get("kind") == "ConfigMap" and "data" in document:
        named = (document.get("metadata") or {}).get("name")
        return _published(document, where) if named == CONFIG_MAP else None
    if "apiVersion" in document:
        return None
    if "nodePools" in document:
        return document
    if isinstance(document.get("global"), dict) and "contract" in document["global"]:
        return render.of_values(document, where)
    return None


def _published(config_map: Raw, where: str) -> Raw:
    try:
        raw = yaml.safe_load(config_map["data"]["contract.yaml"])
    except (KeyError, TypeError, yaml.YAMLError):
        raise UsageError(f"the ConfigMap {CONFIG_MAP} has no contract.yaml that can be read", where=where) from None
    if not isinstance(raw, dict):
        raise UsageError(f"contract.yaml of ConfigMap {CONFIG_MAP} is empty", where=where)
    listed = str(config_map["data"].get(WHEELS, "")).split()  # maintained by `trainyard wheels`
    return {**raw, "packages": {**(raw.get("packages") or {}), "wheels": listed}}
