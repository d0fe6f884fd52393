"""Removes the DAGs that wrap steps with a cache from the nodes (see trainyard.pipelines.translate.memoization)."""

from typing import Any

Nodes = dict[str, dict[str, Any]]


def unwrap(nodes: Nodes) -> Nodes:
    """The nodes as if a step with a cache were one retry with its attempts: what users regard as the step."""
    wrappers = {key: node for key, node in nodes.items() if node.get("type") == "DAG" and "memoizationStatus" in node}
    inside: dict[str, str] = {}  # id of a wrapper -> id of the retry in it
    for key, node in nodes.items():
        if node.get("boundaryID") in wrappers and node.get("type") == "Retry":
            inside[node["boundaryID"]] = key
    found: Nodes = {}
    for key, node in nodes.items():
        around = node.get("boundaryID", "")
        if key in wrappers:
            if key not in inside:
                found[key] = {**node, "type": "Retry"}  # served from cache, or not started
        elif around in inside:
            found[key] = _named(node, wrappers[around], nodes[inside[around]])
        else:
            found[key] = node
    for key, node in found.items():
        if children := node.get("children"):
            found[key] = {**node, "children": [inside.get(child, child) for child in children]}
    return found


def _named(node: dict[str, Any], wrapper: dict[str, Any], retry: dict[str, Any]) -> dict[str, Any]:
    """A retry or one of its attempts, with the task's name."""
    attempt = node["name"].removeprefix(retry["name"])
    return {
        **node,
        "name": wrapper["name"] + attempt,
        "displayName": wrapper.get("displayName", wrapper["name"]) + attempt,
        "boundaryID": wrapper.get("boundaryID", ""),
        "templateName": wrapper.get("templateName", ""),
    }
