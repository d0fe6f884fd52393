"""Node preparation: gives the pod's node the labels and the taint of its pool, and keeps them there."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from trainyard_agent import rounds
from trainyard_agent.api import Api, ApiError
from trainyard_agent.install import gpus
from trainyard_agent.say import PlatformError, say

MANAGER = "trainyard-node-prep"
MISMATCH = "trainyard.io/gpu-mismatch"
PRESENT, PRODUCT = "nvidia.com/gpu.present", "nvidia.com/gpu.product"
COUNT, MEMORY = "nvidia.com/gpu.count", "nvidia.com/gpu.memory"


def choose_pool(pools: list[dict[str, Any]], labels: dict[str, str], found: gpus.Gpus) -> dict[str, Any] | None:
    """The pool of a node: the first whose selector its labels match, else the first selector-less one of its kind.

    A node that once had GPUs stays a GPU node when they vanish: removing the taint would let other pods in.
    """
    for pool in pools:
        selector = pool.get("selector") or {}
        if selector and all(labels.get(key) == value for key, value in selector.items()):
            return pool
    kind = "gpu" if found.count > 0 or labels.get(PRESENT) == "true" else "cpu"
    if kind == "cpu":
        # Labelled by hand or at the node's creation, while the driver is not up yet.
        for pool in pools:
            marks = pool.get("labels") or {}
            if pool["kind"] == "gpu" and marks and all(labels.get(key) == value for key, value in marks.items()):
                return pool
    return next((pool for pool in pools if pool["kind"] == kind and not pool.get("selector")), None)


def label_value(text: str) -> str:
    """A product name as a label value: at most 63 of the characters that Kubernetes allows."""
    return re.sub(r"[^A-Za-z0-9._-]+", "-", text)[:63].strip("-._")


def wanted_labels(pool: dict[str, Any], found: gpus.Gpus, labels: dict[str, str]) -> dict[str, str]:
    """Labels that the node should have: those of its pool, and those that describe its GPUs."""
    want = {str(key): str(value) for key, value in (pool.get("labels") or {}).items()}
    if pool["kind"] != "gpu" or (found.count == 0 and labels.get(PRESENT) != "true"):
        return want
    expected = pool.get("gpu") or {}
    memory = found.memory_mib or int(expected.get("memoryGiB") or 0) * 1024
    want |= {PRESENT: "true", COUNT: str(found.count)}
    if found.model:
        want[PRODUCT] = label_value(found.model)
    if memory and found.count:
        want[MEMORY] = str(memory)
    return want


def mismatch(pool: dict[str, Any], found: gpus.Gpus) -> str:
    """One sentence on how the node differs from what its pool expects; "" if it doesn't."""
    expected = pool.get("gpu") or {}
    if pool["kind"] != "gpu":
        return f"pool {pool['name']} is for CPU nodes, but there are {found.count} GPUs" if found.count else ""
    if expected.get("count") and int(expected["count"]) != found.count:
        return f"{found.count} GPUs found, {expected['count']} expected"
    if expected.get("model") and found.count and label_value(str(expected["model"])) != label_value(found.model):
        return f"GPU model {found.model} found, {expected['model']} expected"
    return ""


def patch_for(node: dict[str, Any], pool: dict[str, Any], found: gpus.Gpus) -> dict[str, Any]:
    """The merge patch that gives the node its labels and taints; {} if it already has them."""
    meta = node["metadata"]
    labels, annotations = meta.get("labels") or {}, meta.get("annotations") or {}
    want = wanted_labels(pool, found, labels)
    change: dict[str, Any] = {key: value for key, value in want.items() if labels.get(key) != value}
    patch: dict[str, Any] = {"metadata": {"labels": change}} if change else {}
    note = mismatch(pool, found)
    if annotations.get(MISMATCH, "") != note:
        patch.setdefault("metadata", {})["annotations"] = {MISMATCH: note or None}
    taint = pool.get("taint")
    if taint:
        taints = node.get("spec", {}).get("taints") or []
        same = [t for t in taints if t.get("key") == taint["key"] and t.get("effect") == taint["effect"]]
        if not (len(same) == 1 and same[0].get("value", "") == taint.get("value", "")):
            patch["spec"] = {"taints": [t for t in taints if t not in same] + [taint]}
    if patch:
        # The patch replaces all taints: refuse to overwrite a change that someone made meanwhile.
        patch.setdefault("metadata", {})["resourceVersion"] = meta["resourceVersion"]
    return patch


def prepare(api: Api, name: str, pools: list[dict[str, Any]], found: gpus.Gpus) -> str:
    """Correct the node once; returns what was changed, "" if nothing was."""
    node = api.get(f"/api/v1/nodes/{name}")
    pool = choose_pool(pools, node["metadata"].get("labels") or {}, found)
    if pool is None:
        return ""
    patch = patch_for(node, pool, found)
    if not patch:
        return ""
    api.merge(f"/api/v1/nodes/{name}", patch, manager=MANAGER)
    patch["metadata"].pop("resourceVersion", None)
    return f"pool {pool['name']}: {json.dumps(patch, sort_keys=True)}"


def run(contract: str, driver_root: str, period: float, node: str, *, once: bool = False) -> int:
    """Check the node every `period` seconds until told to stop; print each API error once and try again."""
    stop, api = rounds.told_to_stop(), Api()
    before: tuple[gpus.Gpus | None, str] = (None, "")
    while True:
        found = gpus.find(driver_root)
        if found != before[0]:
            say(f"node {node} has {found.count} GPUs{': ' + found.model if found.model else ''}")
        trouble = ""
        try:
            pools = json.loads(Path(contract).read_text())["nodePools"]
            changed = prepare(api, node, pools, found)
            if changed:
                say(f"changed {changed}")
        except (OSError, ValueError, KeyError) as error:
            trouble = f"the contract in {contract} can't be read: {error}"
        except ApiError as error:
            trouble = "" if error.status == 409 else f"node {node} was not changed: {error.message}"
            if once:
                raise PlatformError(trouble or error.message) from error
        if trouble and trouble != before[1]:
            say(trouble)
        before = (found, trouble)
        if once or stop.wait(min(period, 2.0) if trouble else period):
            return 0
