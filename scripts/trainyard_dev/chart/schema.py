"""Completes the values schema: a block for each component, and the keys that upstream charts support.

So a misspelt key is refused by name.
"""

import copy
from typing import Any

from trainyard import components
from trainyard.chart import values_schema
from trainyard.chart.values_schema import Schema
from trainyard.paths import ROOT
from trainyard.policy.rules import rules
from trainyard_dev.chart import parts
from trainyard_dev.images import packages

# Keys whose content users define: maps from name to anything.
FREE = {"config", "labels", "annotations"}
MODES = ["enforce", "warn", "audit", "off"]


def source(option: str = "") -> Schema:
    """The schema of the umbrella, or of an option's chart, with a mode for each of its policy rules.

    The umbrella's also has a key for the image of each trainer.
    """
    written = values_schema.read(parts.chart_folder(option) if option else parts.UMBRELLA)
    above = written if option else written["properties"]["policies"]
    modes = {rule.name: {"description": rule.about, "enum": MODES} for rule in rules() if rule.option == option}
    if modes:
        above["properties"]["modes"] |= {"required": [*modes], "properties": modes}
    if option:
        return written
    contract = written["properties"]["global"]["properties"]["contract"]["properties"]
    images, with_cuda = contract["images"]["properties"], contract["cudaImages"].setdefault("properties", {})
    listed = packages.trainers(ROOT)
    for name, about in ((name, one["about"]) for name, one in listed.items() if "about" in one):
        runs = listed.get(f"{name}{packages.CUDA}", {}).get("runs")
        there = f"The one with CUDA, for {', '.join(runs)}." if runs else f"One of yours with {about}."
        images[packages.key(name)] = images["platform"] | {"description": f"Trainer: {about}."}
        with_cuda[packages.key(name)] = images["platform"] | {"description": there}
    return written


def complete(schema: dict[str, Any], dependencies: list[dict[str, str]]) -> dict[str, Any]:
    """A copy of the umbrella's schema that describes each part; upstream parts allow only their own keys."""
    done = copy.deepcopy(schema)
    for one in components.dependencies():
        block = {"description": one.about, "type": "object", **done["properties"].get(one.name, {})}
        done["properties"][one.name] = block
    names = {part.name for part in parts.upstream()} & {dependency["name"] for dependency in dependencies}
    for name in sorted(names):
        known = parts.upstream_values(name)
        mine = done["properties"][name]
        inner: dict[str, Any] = {folder.name: {} for folder in (parts.chart_folder(name) / "charts").glob("*/")}
        mine["properties"] = {"global": {"type": "object"}, **inner, **_keys(known, 2), **mine.get("properties", {})}
        for key, value in known.items():
            if isinstance(value, dict) and value and "properties" in mine["properties"].get(key, {}):
                below = mine["properties"][key]
                below["properties"] = {**_keys(value, 1), **below["properties"]}
                below["additionalProperties"] = False
        mine["additionalProperties"] = False
    return done


def _keys(values: dict[str, Any], depth: int) -> dict[str, Any]:
    """Schemas that allow the keys of `values`, strict for `depth` levels of non-empty maps."""
    schemas: dict[str, Any] = {}
    for key, value in values.items():
        strict = depth > 1 and isinstance(value, dict) and value and key not in FREE and not _is_kubernetes(value)
        schemas[key] = (
            {"type": "object", "additionalProperties": False, "properties": _keys(value, depth - 1)} if strict else {}
        )
    return schemas


def _is_kubernetes(value: dict[str, Any]) -> bool:
    """Whether this is a Kubernetes type, such as an affinity or a security context: its keys aren't the chart's own."""
    return bool(
        {"nodeAffinity", "podAffinity", "privileged", "capabilities", "requests", "limits", "type"} & set(value)
    )
