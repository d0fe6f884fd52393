"""Writes docs/values.md: every value of the chart with its type, default, meaning and allowed values.

Types, meanings and limits come from the completed schema (the umbrella's, those of our subcharts, upstream's keys),
defaults from values.yaml; so the page always matches what `helm install` accepts.
"""

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from trainyard.paths import ROOT
from trainyard_dev.chart import parts
from trainyard_dev.chart.schema import complete, source

PAGE = ROOT / "docs" / "values.md"
LONG = 60  # characters of a default or a pattern that still fit in the table
SCHEMA = "../charts/trainyard/values.schema.yaml"
HEAD = """\
# Values

After this page you can set any value of the chart. `bin/trainyard chart values-reference` generates it from the schema
and the defaults. The chart refuses a key that is not here by name. [Profiles](profiles.md) have values for kinds of
clusters.

`[]` stands for each entry of a list, `<name>` for a key of your choice. A *required* value has no default, or none that
may be left out of an entry.
"""


@dataclass(frozen=True)
class Value:
    """One key: its dotted path, its resolved schema, its default, and whether it is required."""

    path: str
    schema: dict[str, Any]
    default: Any
    required: bool


@dataclass(frozen=True)
class Group:
    """A heading of the page and the values below it; `further` are upstream's keys, which upstream's chart explains."""

    value: Value
    values: tuple[Value, ...]
    further: tuple[str, ...]


ABSENT = object()


def write(page: Path) -> bool:
    """Write the page; False if nothing changed."""
    text = render()
    if page.exists() and page.read_text() == text:
        return False
    page.write_text(text)
    return True


def render() -> str:
    """The whole page as text, the same for equal schema and defaults."""
    groups = list(_groups(*sources()))
    lines = [HEAD, "| group | what |", "|---|---|"]
    lines += [f"| [`{g.value.path}`](#{g.value.path}) | {_meaning(g.value.schema)} |" for g in groups]
    for group in groups:
        lines += _section(group)
    return "\n".join(lines).rstrip() + "\n"


def sources() -> tuple[dict[str, Any], dict[str, Any]]:
    """The completed schema with those of our subcharts in their places, and the defaults of all."""
    meta = yaml.safe_load((parts.UMBRELLA / "Chart.yaml").read_text())
    schema = complete(source(), meta["dependencies"])
    defaults = yaml.safe_load((parts.UMBRELLA / "values.yaml").read_text())
    schema = _resolved(schema, schema.get("definitions", {}))
    for name in parts.own():
        own = source(name)
        own = _resolved(own, own.get("definitions", {}))
        own["properties"].pop("global", None)
        meaning = schema["properties"].get(name, {}).get("description", "")
        schema["properties"][name] = {**own, "description": meaning}
        defaults[name] = _merged(
            yaml.safe_load((parts.chart_folder(name) / "values.yaml").read_text()) or {}, defaults.get(name) or {}
        )
    return schema, defaults


def undescribed(schema: dict[str, Any]) -> list[str]:
    """Paths of our own keys without a description; upstream's keys have no schema, only a name."""
    upstream = tuple(part.name for part in parts.upstream())
    every = _below(Value("", schema, ABSENT, False))
    return [value.path for value in every if not _meaning(value.schema) and not _is_under_one(value.path, upstream)]


def _groups(schema: dict[str, Any], defaults: dict[str, Any]) -> Iterator[Group]:
    for top in _children(Value("", schema, defaults, True)):
        if top.path != "global":
            yield _group(top)
            continue
        below = list(_children(top))
        contract = next(value for value in below if value.path == "global.contract")
        yield _group(top, without=(contract.path,))
        blocks = [value for value in _children(contract) if list(_children(value))]
        yield _group(contract, without=tuple(value.path for value in blocks))
        for block in blocks:
            yield _group(block)


def _group(value: Value, without: tuple[str, ...] = ()) -> Group:
    inside = [v for v in _below(value) if not _is_under_one(v.path, without)]
    inside.sort(key=lambda v: v.path != f"{value.path}.enabled")
    named = tuple(v for v in inside if _meaning(v.schema))
    return Group(value, named, tuple(_outermost([v.path for v in inside if not _meaning(v.schema)])))


def _outermost(paths: list[str]) -> list[str]:
    """Paths without those below another of them, and without `global`, which is the umbrella's."""
    return [p for p in paths if not p.endswith(".global") and not _is_under_one(p, [q for q in paths if q != p])]


def _is_under_one(path: str, above: Sequence[str]) -> bool:
    return any(path == one or path.startswith((f"{one}.", f"{one}[")) for one in above)


def _below(value: Value) -> Iterator[Value]:
    for child in _children(value):
        yield child
        yield from _below(child)


def _children(value: Value) -> Iterator[Value]:
    """The keys of an object, of each entry of a list of objects, or of each value of a map to objects."""
    schema, path, default = value.schema, value.path, value.default
    if isinstance(schema.get("items"), dict):
        schema, path, default = schema["items"], f"{path}[]", ABSENT
    elif isinstance(schema.get("additionalProperties"), dict) and not schema.get("properties"):
        schema, path, default = schema["additionalProperties"], f"{path}.<name>", ABSENT
        if not any(word in schema for word in ("properties", "items", "additionalProperties")):
            return  # the type of a map to plain values is description enough
    required = schema.get("required", [])
    for key, below in schema.get("properties", {}).items():
        inner = default.get(key, ABSENT) if isinstance(default, dict) else ABSENT
        yield Value(f"{path}.{key}" if path else key, below, inner, key in required and inner is ABSENT)


def _resolved(node: Any, definitions: dict[str, Any]) -> Any:
    """A copy with every reference replaced by its definition; keys next to the reference take precedence."""
    if isinstance(node, list):
        return [_resolved(item, definitions) for item in node]
    if not isinstance(node, dict):
        return node
    if isinstance(node.get("$ref"), str):
        target = _resolved(definitions[node["$ref"].rpartition("/")[2]], definitions)
        beside = {key: value for key, value in node.items() if key != "$ref"}
        return {**target, **_resolved(beside, definitions)}
    return {key: _resolved(value, definitions) for key, value in node.items()}


def _merged(below: dict[str, Any], above: dict[str, Any]) -> dict[str, Any]:
    """Values as Helm merges them: maps key by key, everything else replaced."""
    both = dict(below)
    for key, value in above.items():
        inner = both.get(key)
        both[key] = _merged(inner, value) if isinstance(inner, dict) and isinstance(value, dict) else value
    return both


def _section(group: Group) -> list[str]:
    path = group.value.path
    lines = ["", f'<a id="{path}"></a>', "", f"## `{path}`", ""]
    lines += [_meaning(group.value.schema, cell=False), ""]
    if group.values:
        lines += ["| value | type | default | meaning |", "|---|---|---|---|"]
        lines += [_row(value) for value in group.values]
    if group.further:
        lines += ["", "More keys, described in the upstream chart's values:", ""]
        lines += [", ".join(f"`{further.removeprefix(path + '.')}`" for further in group.further) + "."]
    for value in (group.value, *group.values):
        if _is_shown(value) and len(_inline(value.default)) > LONG:
            text = yaml.safe_dump(value.default, sort_keys=False, width=110).rstrip()
            lines += ["", f"Default of `{value.path}`:", "", "```yaml", text, "```"]
    return lines


def _row(value: Value) -> str:
    limits = _limits(value.schema)
    meaning = " ".join(filter(None, (_meaning(value.schema), limits)))
    cells = (f'<a id="{value.path}"></a>`{value.path}`', kind(value.schema), _default(value), meaning)
    return "| " + " | ".join(cells) + " |"


def kind(schema: dict[str, Any]) -> str:
    """The type in words."""
    if "const" in schema:
        return _code(schema["const"])
    if "enum" in schema:
        return " or ".join(_code(option) for option in schema["enum"])
    types = schema.get("type", [])
    names = [types] if isinstance(types, str) else list(types)
    if {"string", "integer"} <= set(names):
        return "quantity"
    if "array" in names:
        inner = kind(schema["items"]) if isinstance(schema.get("items"), dict) else ""
        return f"list of {inner}{'s' * (' ' not in inner)}" if inner else "list"
    if "object" in names and isinstance(schema.get("additionalProperties"), dict):
        return f"map of {kind(schema['additionalProperties'])}"
    words = {"object": "map", "number": "number", "integer": "integer", "boolean": "true or false", "null": "null"}
    return " or ".join(words.get(name, name) for name in names) or "any"


def _limits(schema: dict[str, Any]) -> str:
    """The limits in the schema that the type doesn't show, in one sentence."""
    words = []
    low, high = schema.get("minimum"), schema.get("maximum")
    if low is not None and high is not None:
        words.append(f"{low} to {high}")
    elif low is not None:
        words.append(f"{low} or more")
    elif high is not None:
        words.append(f"{high} or less")
    pattern = schema.get("pattern", "")
    if pattern:
        words.append(f"matches {_code(pattern)}" if len(pattern) <= LONG else f"as the [pattern]({SCHEMA}) says")
    if schema.get("minItems"):
        words.append(f"at least {schema['minItems']} " + ("entry" if schema["minItems"] == 1 else "entries"))
    if schema.get("minLength") and not schema.get("pattern"):
        words.append("not empty" if schema["minLength"] == 1 else f"at least {schema['minLength']} characters")
    if isinstance(schema.get("not"), dict) and "const" in schema["not"]:
        words.append(f"not {_code(schema['not']['const'])}")
    return f"Allowed: {'; '.join(words)}." if words else ""


def _default(value: Value) -> str:
    if value.required:
        return "*required*"
    if not _is_shown(value):
        return ""
    text = _inline(value.default)
    return "see below" if len(text) > LONG else _code_text(text)


def _is_shown(value: Value) -> bool:
    """Whether the default of this key is shown. A map's is, unless the page lists its keys with their own."""
    if value.default is ABSENT:
        return False
    return not (isinstance(value.default, dict) and list(_children(value)))


def _inline(default: Any) -> str:
    return json.dumps(default, ensure_ascii=False)


def _meaning(schema: dict[str, Any], *, cell: bool = True) -> str:
    """A key's description in one line; a bar would end a table's cell, an angle bracket begin a tag."""
    text = " ".join(str(schema.get("description", "")).split()).replace("<", "&lt;")
    return _cell(text) if cell else text


def _code(value: Any) -> str:
    return _code_text(value if isinstance(value, str) and value else json.dumps(value))


def _code_text(text: str) -> str:
    """Text in a table cell as code; a bar would end the cell."""
    return f"`{_cell(text)}`"


def _cell(text: str) -> str:
    return re.sub(r"(?<!\\)\|", r"\\|", text)
