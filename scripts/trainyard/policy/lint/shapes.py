"""Checks the shape of Kubernetes objects with the schemas of shapes.yaml; each violation is one sentence."""

import copy
import difflib
import functools
import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import yaml
from jsonschema import Draft202012Validator

from trainyard.kinds import registry
from trainyard.kinds.check import MEANT, near, shown, types
from trainyard.yaml_lines import Path as Place

FILE = Path(__file__).with_name("shapes.yaml")
FIELDS: dict[str, dict[str, Any]] = {
    registry.TEXT: {"$ref": "#/$defs/text"},
    registry.OBJECT: {"type": "object"},
    registry.FLAG: {"type": "boolean"},
    registry.COUNT: {"type": "integer", "minimum": 1},
}
AMOUNTS = {"requests", "limits", "minResources"}
# Argo's singular fields, which hera only has in the plural.
OLD = {"CronWorkflowSpec": ("schedule",), "Synchronization": ("mutex", "semaphore")}
GONE, ADDED, QUOTED = "remove it", "add ", "write it in quotes"


def kind(obj: dict[str, Any]) -> str:
    """`Kind.group`, or `Kind` for the core group."""
    group, slash, _ = str(obj.get("apiVersion", "")).rpartition("/")
    return f"{obj.get('kind')}.{group}" if slash else str(obj.get("kind"))


@functools.cache
def known() -> frozenset[str]:
    """All kinds with a schema here."""
    return frozenset(_file()["kinds"])


@functools.cache
def _file() -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load(FILE.read_text())
    found["kinds"] |= {f"{one.kind}.{one.group}": _training(one) for one in registry.KINDS if one.replicas}
    return found


def _training(one: registry.Kind) -> dict[str, Any]:
    """Schema of a kind with roles: a run policy, its replicas, and its own fields."""
    replicas = {"$ref": "#/$defs/replicas", "propertyNames": {"enum": list(one.roles)}}
    own = {name: FIELDS[holds] for name, holds in one.fields.items()}
    return {
        "type": "object",
        "additionalProperties": False,
        "required": [one.replicas],
        "properties": {"runPolicy": {"$ref": "#/$defs/runPolicy"}, **own, one.replicas: replicas},
    }


@functools.cache
def _validator(kind: str) -> Draft202012Validator:
    file = _file()
    schema = {
        "$defs": file["$defs"],
        "type": "object",
        "required": ["metadata", "spec"],
        "properties": {"metadata": {"$ref": "#/$defs/metadata"}, "spec": file["kinds"][kind]},
    }
    return Draft202012Validator(schema)


@functools.cache
def _argo(kind: str) -> Draft202012Validator:
    """Schema of all fields of Argo's kinds at any depth, from hera, since Argo drops unknown fields."""
    from hera.workflows import models

    schema = getattr(models, kind).model_json_schema(by_alias=True)
    for name, one in (("", schema), *schema["$defs"].items()):
        if one.get("properties"):
            one["additionalProperties"] = False
            one["properties"] |= {key: {} for key in OLD.get(name, ())}
    return Draft202012Validator(schema)


def _unknown(errors: Iterable[Any]) -> Iterator[tuple[Place, str, str]]:
    """Unknown fields, also within alternatives."""
    for error in errors:
        yield from _unknown(error.context or ())
        if error.validator == "additionalProperties":
            path = tuple(error.absolute_path)
            for name in sorted(set(error.instance) - set(error.schema["properties"])):
                hint = near(name, error.schema["properties"], GONE)
                yield (*path, name), f"unknown field {name} in {_place(path)}", hint


def validation_errors(obj: dict[str, Any]) -> Iterator[tuple[Place, str, str]]:
    """All violations as (path, what, hint). The kind must be `known`."""
    plain = json.loads(json.dumps(obj, default=str))
    found = list(_violations(_validator(kind(obj)).iter_errors(plain)))
    yield from found
    if kind(obj).endswith(".argoproj.io"):
        said = {path for path, _, _ in found}
        yield from (one for one in dict.fromkeys(_unknown(_argo(obj["kind"]).iter_errors(plain))) if one[0] not in said)


def _violations(errors: Iterable[Any]) -> Iterator[tuple[Place, str, str]]:
    for error in errors:
        path = tuple(error.absolute_path)
        rule, value = error.validator, error.validator_value
        stands = f"{_place(path)} is {shown(error.instance)}"
        if rule == "additionalProperties":
            yield from _unknown([error])
        elif rule == "required":
            missing = next(name for name in value if name not in error.instance)
            unknown = set(error.instance) - set(error.schema.get("properties", {}))
            if error.schema.get("additionalProperties") is False and difflib.get_close_matches(missing, unknown):
                continue  # the field exists under a name that is reported as unknown
            yield path, f"{_place(path)} has no {missing}", f"{ADDED}{missing}"
        elif rule == "type":
            yield path, f"{stands}, not {types(value)}", _quote(error.instance, value)
        elif rule == "enum":
            yield path, stands, f"use one of {', '.join(filter(None, value))}"
        elif rule in ("minimum", "pattern"):
            yield path, stands, _hint(path, rule, value)
        else:
            yield path, f"{_place(path)} is empty", "set it, see manifests/jobs for examples"


def fixed(obj: dict[str, Any], errors: Iterable[tuple[Place, str, str]]) -> tuple[dict[str, Any], list[Place]]:
    """The object after following the hints that name a field, and the fields that are still wrong.

    The rules judge this object, so that all their findings are reported at once. Parts that YAML shares stay shared.
    """
    made, broken = copy.deepcopy(obj), []
    for path, _, hint in errors:
        holder = _at(made, path[:-1])
        name = hint.removeprefix(MEANT) if hint.startswith(MEANT) else ""
        if name or hint == GONE:
            value = holder.pop(path[-1], None)
            if name and value is not None:
                holder.setdefault(name, value)
        elif hint.startswith(QUOTED):
            holder[path[-1]] = str(holder[path[-1]])
        else:
            broken.append((*path, hint.removeprefix(ADDED)) if hint.startswith(ADDED) else path)
    return made, broken


def _at(value: Any, path: Place) -> Any:
    for part in path:
        value = value[part]
    return value


def _hint(path: Place, rule: str, value: Any) -> str:
    if AMOUNTS & set(path[-2:]):
        return "use a quantity such as 2, 500m or 16Gi"
    return f"use {value} or more" if rule == "minimum" else "use lower-case letters, digits and hyphens"


def _place(path: Place) -> str:
    """Short name of a path: its last two words, such as `container main`, are easier to find than the whole."""
    words = [str(part) for part in path if part != "spec" or len(path) == 1]
    return ".".join(words[-2:]) if words else "the object"


def _quote(value: Any, wanted: Any) -> str:
    if wanted == "string" and isinstance(value, bool):
        return 'YAML reads yes, no, on and off as true or false: write it in quotes, such as "yes"'
    if wanted == "string" and isinstance(value, (int, float)):
        return f'{QUOTED}: "{value}"'
    return f"write {types(wanted)}"
