"""Parts agree: pods fit the nodes that they are meant for, jobs name what the contract has."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from trainyard.chart import package, parts
from trainyard.paths import ROOT

Objects = list[dict[str, Any]]
KINDS = ("Deployment", "StatefulSet", "DaemonSet", "Job", "Pod")
EVERYWHERE = {"trainyard-node-prep"}
ON_GPU = {"trainyard-nvidia-device-plugin"}
# Keys that an upstream chart reads but leaves out of its values.yaml.
UNLISTED = {"nvidia-device-plugin": {"nvidiaDevRoot": None}}
JOBS = sorted((ROOT / "manifests" / "jobs").glob("*.yaml"))


def contract_of(objects: Objects) -> dict[str, Any]:
    text = next(o for o in objects if o["metadata"]["name"] == "trainyard-contract")["data"]["contract.yaml"]
    return yaml.safe_load(text)


def nodes_of(contract: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """A node of each kind as node preparation leaves it."""
    nodes = {}
    for pool in contract["nodePools"]:
        labels = dict(pool.get("labels", {}), **({"nvidia.com/gpu.present": "true"} if pool["kind"] == "gpu" else {}))
        nodes[pool["kind"]] = {"labels": labels, "taints": [pool["taint"]] if pool.get("taint") else []}
    return nodes


def tolerates(taint: dict[str, str], toleration: dict[str, str]) -> bool:
    if toleration.get("effect") not in (None, "", taint["effect"]):
        return False
    if toleration.get("operator") == "Exists":
        return toleration.get("key") in (None, "", taint["key"])
    return toleration.get("key") == taint["key"] and toleration.get("value", "") == taint.get("value", "")


def expression_holds(expression: dict[str, Any], labels: dict[str, str]) -> bool:
    value, operator = labels.get(expression["key"]), expression["operator"]
    return {
        "In": value in expression.get("values", []),
        "NotIn": value not in expression.get("values", []),
        "Exists": value is not None,
        "DoesNotExist": value is None,
    }[operator]


def fits(spec: dict[str, Any], node: dict[str, Any]) -> bool:
    """Would a scheduler put this pod on that node (labels and taints only)?"""
    for taint in node["taints"]:
        if not any(tolerates(taint, toleration) for toleration in spec.get("tolerations") or []):
            return False
    if any(node["labels"].get(key) != value for key, value in (spec.get("nodeSelector") or {}).items()):
        return False
    affinity = (spec.get("affinity") or {}).get("nodeAffinity") or {}
    terms = (affinity.get("requiredDuringSchedulingIgnoredDuringExecution") or {}).get("nodeSelectorTerms")
    return not terms or any(
        all(expression_holds(e, node["labels"]) for e in term.get("matchExpressions", [])) for term in terms
    )


def test_every_workload_fits_the_nodes_it_is_meant_for(objects: Objects) -> None:
    nodes = nodes_of(contract_of(objects))
    seen = set()
    for obj in objects:
        if obj["kind"] not in KINDS:
            continue
        name = obj["metadata"]["name"]
        seen.add(name)
        where = {kind for kind, node in nodes.items() for spec in package.pod_specs(obj) if fits(spec, node)}
        wanted = {"gpu", "cpu"} if name in EVERYWHERE else {"gpu"} if name in ON_GPU else {"cpu"}
        assert where == wanted, f"{obj['kind']} {name} fits {where or 'no node'}, it is meant for {wanted}"
    assert EVERYWHERE | ON_GPU | {"trainyard-setup", "trainyard-test", "trainyard-scheduler"} <= seen


def test_platform_pods_avoid_a_gpu_node_that_is_labelled_but_not_tainted_yet(objects: Objects) -> None:
    node = {"labels": {"trainyard.io/pool": "gpu"}, "taints": []}
    stray = [
        obj["metadata"]["name"]
        for obj in objects
        if obj["kind"] in KINDS and obj["metadata"]["name"] not in EVERYWHERE
        for spec in package.pod_specs(obj)
        if fits(spec, node)
    ]
    assert stray == []


def test_subcharts_know_every_key_that_we_set(chart: Path) -> None:
    files = [parts.UMBRELLA / "values.yaml", *(parts.profile_file(name) for name in parts.profiles())]
    unknown = []
    for file in files:
        values = yaml.safe_load(file.read_text())
        for part in [upstream.name for upstream in parts.UPSTREAM] + list(parts.OWN):
            folder = chart / "charts" / part
            if folder.exists():
                known = yaml.safe_load((folder / "values.yaml").read_text()) | UNLISTED.get(part, {})
                unknown += [f"{file.name}: {part}.{key}" for key in _unknown(values.get(part) or {}, known)]
    assert unknown == []


def test_unlisted_keys_are_still_read(chart: Path) -> None:
    for part, keys in UNLISTED.items():
        text = "".join(file.read_text() for file in (chart / "charts" / part / "templates").iterdir())
        assert all(f".Values.{key}" in text for key in keys)


def _unknown(ours: dict[str, Any], known: dict[str, Any], path: str = "") -> list[str]:
    """Keys of ours that are not among the known; below a key that is empty or null there, anything goes."""
    found = []
    for key, value in ours.items():
        if key not in known and (path or key != "enabled"):
            found.append(path + key)
        elif (
            isinstance(value, dict)
            and isinstance(known.get(key), dict)
            and known[key]
            and not {"nodeAffinity", "requests", "limits"} & (set(known[key]) | set(value))
        ):
            found += _unknown(value, known[key], f"{path}{key}.")
    return found


@pytest.mark.parametrize("file", JOBS, ids=lambda file: file.stem)
def test_example_jobs_agree_with_the_contract(file: Path, rendered: dict[str, Objects]) -> None:
    contract = contract_of(rendered["kind"])
    nodes = nodes_of(contract)
    gpu = next(pool for pool in contract["nodePools"] if pool["kind"] == "gpu")["gpu"]["resource"]
    queues = {queue["name"] for queue in contract["queues"]}
    classes = {entry["name"] for entry in contract["priorityClasses"]}
    images = {f"{contract['imageRegistry']}/{image}" for image in contract["images"].values()}
    buckets = {bucket["name"] for bucket in contract["storage"]["buckets"]}
    specs = 0
    for job in yaml.safe_load_all(file.read_text()):
        for key, value in _leaves(job):
            if key in ("queue", "scheduling.volcano.sh/queue-name"):
                assert value in queues, f"queue {value}"
            if key in ("priorityClassName", "priorityClass"):
                assert value in classes, f"priority class {value}"
            if key == "image":
                assert value in images, f"image {value}"
            if key == "schedulerName":
                assert value == contract["scheduler"]["name"]
            if key == "storageClassName":
                assert value == contract["storage"]["sharedClass"]
            if isinstance(value, str) and "s3://" in value:
                assert value.split("s3://")[1].split("/")[0] in buckets, value
        for spec in _pods(job):
            specs += 1
            wants = any(gpu in container.get("resources", {}).get("limits", {}) for container in spec["containers"])
            where = {kind for kind, node in nodes.items() if fits(spec, node)}
            assert ("gpu" in where) if wants else where == {"cpu"}, f"a pod fits {where or 'no node'}"
    assert specs


def _leaves(node: Any, key: str = "") -> list[tuple[str, Any]]:
    if isinstance(node, dict):
        return [leaf for name, value in node.items() for leaf in _leaves(value, name)]
    if isinstance(node, list):
        return [leaf for value in node for leaf in _leaves(value, key)]
    return [(key, node)]


def _pods(node: Any) -> list[dict[str, Any]]:
    """Every pod spec inside a job of whatever kind."""
    if isinstance(node, list):
        return [spec for value in node for spec in _pods(value)]
    if not isinstance(node, dict):
        return []
    if "containers" in node:
        return [node]
    return [spec for value in node.values() for spec in _pods(value)]
