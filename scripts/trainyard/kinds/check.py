"""Validation of trainyard.yaml against its schema, with the line of each error."""

import json
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Any

from trainyard.errors import UsageError
from trainyard.kinds import registry
from trainyard.yaml_lines import Document, documents
from trainyard.yaml_lines import Path as Place

SCHEMA = Path(__file__).with_name("schema.json")
HINT, MEANT = "see docs/train.md for all settings", "did you mean "
WORDS = {"string": "a text", "integer": "a whole number", "number": "a number", "object": "a map", "array": "a list"}
WORDS |= {"boolean": "true or false"}


@cache
def schema() -> dict[str, Any]:
    """The schema of a job's settings, with the frameworks of the registry."""
    found: dict[str, Any] = json.loads(SCHEMA.read_text())
    found["properties"]["framework"]["enum"] = list(registry.FRAMEWORKS)
    ranks = ", ".join(kind.framework for kind in registry.KINDS if kind.per_gpu)
    about = found["properties"]["processes"]
    about["description"] = about["description"].replace("@PER_GPU@", ranks)
    return found


def settings(text: str, file: str) -> dict[str, Any]:
    """Well-formed settings of a file. Raises UsageError, which names the line of the first error."""
    found = documents(text, file)
    if not found:
        return {}
    if len(found) > 1:
        raise UsageError("the file has several documents", where=file, hint="keep one, and remove the lines with ---")
    validation_errors(found[0], file)
    return found[0].data


def values(given: dict[str, Any], source: str) -> None:
    """Validates settings that come from no file. Raises UsageError."""
    validation_errors(Document(given, {}), source)


def validation_errors(document: Document, file: str) -> None:
    """Raises UsageError for the first error of one document; `name` and `command` may come from elsewhere."""
    for path, what, hint in found(document):
        raise UsageError(what, where=f"{file}:{document.line(*path)}" if document.lines else file, hint=hint)


def found(document: Document) -> list[tuple[Place, str, str]]:
    """All errors of a document, as (path, what, hint), in order of line."""
    if not isinstance(document.data, dict):
        return [((), "settings must be a map of `key: value`", HINT)]
    from jsonschema import Draft202012Validator

    bare = {key: value for key, value in schema().items() if key != "required"}
    validation_errors: list[tuple[Place, str, str]] = []
    for error in Draft202012Validator(bare).iter_errors(document.data):
        path = list(error.absolute_path)
        if error.validator == "additionalProperties" and not path:
            unknown = [str(key) for key in document.data if key not in schema()["properties"]]
            validation_errors += [
                ((one,), f"unknown setting {one}", near(one, schema()["properties"], HINT)) for one in unknown
            ]
        else:
            validation_errors.append((tuple(path), _what(error, path), _hint(path, error)))
    return sorted(validation_errors, key=lambda one: document.line(*one[0]))


def _what(error: Any, path: list[str | int]) -> str:
    place = ".".join(str(part) for part in path)
    value = error.instance
    if "propertyNames" in error.absolute_schema_path:
        return f"{place} has the name {json.dumps(value, default=str)}; use letters, digits and _ only"
    if isinstance(value, bool):
        return f"{place} is {shown(value)}, which YAML reads as yes or no"
    return f"invalid {place}: {shown(value)}" if error.validator == "pattern" else f"{place} is {shown(value)}"


def shown(value: Any) -> str:
    """A value as JSON for a message, truncated if long."""
    text = json.dumps(value, default=str)
    return text if len(text) < 60 else f"{text[:57]}…"


def _hint(path: list[str | int], error: Any) -> str:
    if path and path[0] == "env":
        return "write each value as a string in quotes, or as {secret: NAME, key: KEY}"
    if path and path[0] == "command":
        return 'write it as a list of words, such as [python, train.py, "--epochs=3"]'
    rule = {
        "enum": lambda: f"use one of {', '.join(map(str, error.validator_value))}",
        "minimum": lambda: f"use at least {error.validator_value}",
        "maximum": lambda: f"use at most {error.validator_value}",
        "maxLength": lambda: f"use at most {error.validator_value} characters",
        "type": lambda: f"it must be {types(error.validator_value)}",
        "required": lambda: f"it needs {', '.join(error.validator_value)}",
    }.get(error.validator)
    if rule:
        return rule()
    return str(error.schema.get("hint", HINT))


def types(wanted: str | list[str]) -> str:
    """A schema's types in words."""
    return " or ".join(WORDS.get(one, one) for one in ([wanted] if isinstance(wanted, str) else wanted))


def near(name: str, fields: Iterable[str], otherwise: str) -> str:
    """The hint for an unknown name: the closest field, else `otherwise`."""
    import difflib

    close = difflib.get_close_matches(name, fields, n=1, cutoff=0.6)
    return f"{MEANT}{close[0]}" if close else otherwise
