"""Schemas of the charts' values, with what their files leave out because other keys tell it."""

import json
from pathlib import Path
from typing import Any

import yaml

from trainyard.paths import CHART

FILE = "values.schema.yaml"
LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # the faster where PyYAML has it
Schema = dict[str, Any]


def read(chart: Path = CHART) -> Schema:
    """The whole schema of a chart, the umbrella's or of one beside it, which may refer to the umbrella's definitions.

    What two places of the file share is there twice.
    """
    written, umbrella = (yaml.load((folder / FILE).read_text(), LOADER) for folder in (chart, CHART))
    written["definitions"] = {**umbrella["definitions"], **written.get("definitions", {})}
    return implied(json.loads(json.dumps(written)))


def implied(schema: Schema) -> Schema:
    """The same with the types that its keys tell. `properties` without a type are a map that takes no other keys."""
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
