"""Renders the table as MutatingAdmissionPolicies: for each group one expression that gives a JSON Patch.

The places where an entry applies are a variable of the policy, `fills<n>`: JSON pointers. All are computed from the
original object; then follow the patches: parents of the fields, the fields, and the annotations that list them.
"""

import functools
import re
from typing import Any

from trainyard.policy.fill.table import Entry, Group, groups

PREFIX = "trainyard-fill-"
API, KIND = "admissionregistration.k8s.io/v1", "MutatingAdmissionPolicy"
TOLD = "trainyard.io/filled"  # annotation: names of the filled-in fields
STANDS_IN = "trainyard.io/image-stands-in"  # annotation: replaced images with their replacements
IMAGES = "images"  # the place whose entries replace images
NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


@functools.cache
def policies() -> tuple[dict[str, Any], ...]:
    """The policies, by group; the chart writes a site's values to their variables `params` and `site`."""
    return tuple(_policy(group) for group in groups())


def packed() -> dict[str, Any]:
    """The policies as stored in the chart: groups share most of their texts, and a release has a size limit.

    `texts` has each text once; a policy has `variables`, names with indexes of texts, and `patches`, indexes to join.
    """
    texts: dict[str, int] = {}

    def number(text: str) -> int:
        return texts.setdefault(text, len(texts))

    made = [
        {
            "name": f"{PREFIX}{group.name}",
            "about": group.about,
            "rules": [dict(rule) for rule in group.rules],
            "variables": [{"name": name, "text": number(text)} for name, text in variables(group).items()],
            "patches": [number(text) for text in _patches(group)],
        }
        for group in groups()
    ]
    return {"policies": made, "texts": list(texts)}


def variables(group: Group) -> dict[str, str]:
    """Variables of a group, then `fills<n>` for the places of its entries, and `some` if any of them applies."""
    made = {**dict(group.variables), **{fills(entry): _applies(entry) for entry in group.entries}}
    return made | {"some": " || ".join(f"variables.{fills(entry)}.size() > 0" for entry in group.entries)}


def fills(entry: Entry) -> str:
    """Name of the variable with the places where an entry applies."""
    return f"fills{entry.number}"


def _policy(group: Group) -> dict[str, Any]:
    return {
        "apiVersion": API,
        "kind": KIND,
        "metadata": {"name": f"{PREFIX}{group.name}", "annotations": {"trainyard.io/about": group.about}},
        "spec": {
            # An object that can't be filled in is unchanged; the rules then report what is missing.
            "failurePolicy": "Ignore",
            "reinvocationPolicy": "IfNeeded",
            "matchConstraints": {"resourceRules": [dict(rule) for rule in group.rules]},
            "variables": [{"name": name, "expression": text} for name, text in variables(group).items()],
            "mutations": [{"patchType": "JSONPatch", "jsonPatch": {"expression": "\n+ ".join(_patches(group))}}],
        },
    }


def _applies(entry: Entry) -> str:
    there = _field(entry.path)
    if entry.absent:
        test = f"{there}.orValue('') in [{', '.join(repr(one) for one in entry.absent)}] && "
    elif entry.way == "append":
        test = ""
    else:
        test = f"{'!' if entry.way == 'add' else ''}{there}.hasValue() && "
    return f"variables.{entry.place}.filter(p, {test}({entry.when})).map(p, p.at)"


def _patches(group: Group) -> list[str]:
    """Expressions for lists of patches, to be joined."""
    notes = "dyn(object).metadata.?annotations"
    names = ", ".join(f"variables.{fills(entry)}.size() > 0 ? '{entry.name}' : ''" for entry in group.entries)
    said = f"({notes}[?'{TOLD}'].orValue('').split(', ') + [{names}]).filter(n, n != '').distinct().join(', ')"
    first = _patch("add", quoted("metadata", "annotations"), "{}")
    parts = [f"({notes}.hasValue() || !variables.some ? [] : [{first}])"]
    parts += [_around(place, path, users) for (place, path), users in _parents(group).items()]
    parts += [_leaf(entry) for entry in group.entries]
    parts.append(f"(variables.some ? [{_patch('add', quoted('metadata', 'annotations', TOLD), said)}] : [])")
    for entry in group.entries:
        if entry.place == IMAGES:
            replaced = (
                f"variables.{IMAGES}.filter(p, p.at in variables.{fills(entry)})"
                f".map(p, p.t.image + ' -> ' + {entry.value}).distinct().join(', ')"
            )
            patch = _patch("add", quoted("metadata", "annotations", STANDS_IN), replaced)
            parts.append(f"(variables.{fills(entry)}.size() > 0 ? [{patch}] : [])")
    return parts


def _parents(group: Group) -> dict[tuple[str, tuple[str, ...]], list[Entry]]:
    """All parents of the fields, by place and path, outer before inner, with the entries that need them."""
    found: dict[tuple[str, tuple[str, ...]], list[Entry]] = {}
    for entry in group.entries:
        if entry.way in ("add", "append"):
            for length in range(1, len(entry.path) + (entry.way == "append")):
                found.setdefault((entry.place, entry.path[:length]), []).append(entry)
    return dict(sorted(found.items(), key=lambda item: len(item[0][1])))


def _around(place: str, path: tuple[str, ...], users: list[Entry]) -> str:
    needed = " || ".join(f"p.at in variables.{fills(entry)}" for entry in users)
    listed = any(entry.way == "append" and entry.path == path for entry in users)
    made = _patch("add", _pointer(path), "[]" if listed else "{}")
    return f"variables.{place}.filter(p, !{_field(path)}.hasValue() && ({needed})).map(p, {made})"


def _leaf(entry: Entry) -> str:
    pointer = _pointer(entry.path) + (" + '/-'" if entry.way == "append" else "")
    made = _patch("add" if entry.way == "append" else entry.way, pointer, entry.value)
    return f"variables.{entry.place}.filter(p, p.at in variables.{fills(entry)}).map(p, {made})"


def _patch(way: str, pointer: str, value: str) -> str:
    return f"JSONPatch{{op: '{way}', path: {pointer}{f', value: {value}' if value else ''}}}"


def _field(path: tuple[str, ...]) -> str:
    """The expression for a field below `p.t`, as an optional value."""
    text = "p.t"
    for part in path:
        if part.startswith("="):
            text += f"[?{part[1:]}]"
        else:
            text += f".?{part}" if NAME.fullmatch(part) else f"[?'{part}']"
    return text


def _pointer(path: tuple[str, ...]) -> str:
    """The expression for the JSON pointer of a field."""
    parts = [f"jsonpatch.escapeKey({part[1:]})" if part.startswith("=") else quoted(part)[:1] + quoted(part)[2:]
             for part in path]  # fmt: skip
    return "p.at + '/' + " + " + '/' + ".join(parts).replace("' + '", "")


def quoted(*keys: str) -> str:
    """A JSON pointer as a string literal of CEL."""
    return "'" + "".join("/" + key.replace("~", "~0").replace("/", "~1") for key in keys) + "'"
