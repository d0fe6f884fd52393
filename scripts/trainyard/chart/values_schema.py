"""Schemas of the charts' values, completed with the parts that their files omit because other keys imply them."""

import json
from pathlib import Path
from typing import Any

import yaml

from trainyard.paths import CHART

FILE = "values.schema.yaml"
LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # the faster loader, if PyYAML has it
Schema = dict[str, Any]


def read(chart: Path = CHART) -> Schema:
    """The complete schema of a chart. Other charts' schemas may refer to the umbrella chart's definitions.

    Parts that the file shares by aliases are copied.
    """
    written, umbrella = (yaml.load((folder / FILE).read_text(), LOADER) for folder in (chart, CHART))
    written["definitions"] = {**umbrella["definitions"], **written.get("definitions", {})}
    return implied(json.loads(json.dumps(written)))


def implied(schema: Schema) -> Schema:
    """The schema with types implied by its keys. `properties` without a type mean a map without other keys."""
    found: Schema = {}
    for key, value in schema.items():
        if key in ("properties", "definitions"):
            found[key] = {name: implied(below) for name, below in value.items()}
        elif key in ("items", "additionalProperties") and isinstance(value, dict):
            found[key] = implied(value)
        else:
            found[key] = value
    if "type" in schema or "enum" in schema or "$ref" in schema:
        return found
    if "properties" in schema:
        return {"type": "object", "additionalProperties": False, **found}
    if isinstance(schema.get("additionalProperties"), dict):
        return {"type": "object", **found}
    if "items" in schema:
        return {"type": "array", **found}
    return {"type": "string", **found} if "pattern" in schema or "minLength" in schema else found
