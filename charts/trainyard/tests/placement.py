"""Whether a scheduler could place a pod on a node, by labels and taints only."""

from __future__ import annotations

from typing import Any

Node = dict[str, Any]
KINDS = ("CronJob", "DaemonSet", "Deployment", "Job", "Pod", "StatefulSet")


def nodes_of(contract: dict[str, Any]) -> dict[str, Node]:
    """A node of each pool, by the pool's name, as node preparation leaves it."""
    nodes = {}
    for pool in contract["nodePools"]:
        labels = (pool.get("selector") or {}) | (pool.get("labels") or {})
        if pool["kind"] == "gpu":
            labels["nvidia.com/gpu.present"] = "true"
        nodes[pool["name"]] = {"labels": labels, "taints": [pool["taint"]] if pool.get("taint") else []}
    return nodes


def tolerates(taint: dict[str, str], toleration: dict[str, str]) -> bool:
    if toleration.get("effect") not in (None, "", taint["effect"]):
        return False
    if toleration.get("operator") == "Exists":
        return toleration.get("key") in (None, "", taint["key"])
    return toleration.get("key") == taint["key"] and toleration.get("value", "") == taint.get("value", "")


def _holds(expression: dict[str, Any], labels: dict[str, str]) -> bool:
    value, operator = labels.get(expression["key"]), expression["operator"]
    return {
        "In": value in expression.get("values", []),
        "NotIn": value not in expression.get("values", []),
        "Exists": value is not None,
        "DoesNotExist": value is None,
    }[operator]


def fits(spec: dict[str, Any], node: Node) -> bool:
    """Whether this pod may run on that node."""
    for taint in node["taints"]:
        if taint["effect"] != "PreferNoSchedule" and not any(
            tolerates(taint, toleration) for toleration in spec.get("tolerations") or []
        ):
            return False
    if any(node["labels"].get(key) != value for key, value in (spec.get("nodeSelector") or {}).items()):
        return False
    affinity = (spec.get("affinity") or {}).get("nodeAffinity") or {}
    terms = (affinity.get("requiredDuringSchedulingIgnoredDuringExecution") or {}).get("nodeSelectorTerms")
    return not terms or any(all(_holds(e, node["labels"]) for e in term.get("matchExpressions", [])) for term in terms)


def where(spec: dict[str, Any], contract: dict[str, Any]) -> set[str]:
    """Names of the pools that the pod may run in."""
    return {name for name, node in nodes_of(contract).items() if fits(spec, node)}


def pods_in(node: Any) -> list[dict[str, Any]]:
    """Every pod spec inside an object of whatever kind."""
    if isinstance(node, list):
        return [spec for value in node for spec in pods_in(value)]
    if not isinstance(node, dict):
        return []
    if "containers" in node:
        return [node]
    return [spec for value in node.values() for spec in pods_in(value)]
