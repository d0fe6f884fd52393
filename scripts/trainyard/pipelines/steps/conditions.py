r"""Conditions on an object, as Argo's resource templates write them: `status.phase == Succeeded, status.ready > 1`.

Parts are joined by commas, and all must hold. A path's words are joined by dots (`\.` is a dot in a name); a number is
an index into a list, `#` its length, `#(type==Ready)` its first item with that field.
"""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from trainyard.errors import UsageError

PATH = r"(?:\\.|#\([^)]*\)|[^\s=!<>,()\\])+"
PART = re.compile(
    rf"\s*(?:!\s*(?P<absent>{PATH})"
    rf"|(?P<path>{PATH})(?:\s*(?P<sign>==|=|!=|>|<)\s*(?P<value>\"[^\"]*\"|'[^']*'|[^,\s=!<>()][^,\s]*)"
    rf"|\s+(?P<word>in|notin)\s*\((?P<values>[^)]*)\))?)\s*(?:,|$)"
)
STEP = re.compile(r"((?:\\.|#\([^)]*\)|[^.\\])+)(?:\.|$)")
ITEM = re.compile(r"#\(\s*(?P<field>[^=!<>\s]+)\s*==?\s*(?P<value>.*?)\s*\)")
NOTHING = object()
HINT = "write path == value, joined by commas, such as status.phase == Succeeded"


@dataclass(frozen=True)
class Part:
    """One comparison. `sign` is one of = != > < in notin exists absent."""

    path: str
    sign: str
    values: tuple[str, ...] = ()

    def __str__(self) -> str:
        if self.sign in ("exists", "absent"):
            return self.path if self.sign == "exists" else f"!{self.path}"
        if self.sign in ("in", "notin"):
            return f"{self.path} {self.sign} ({', '.join(self.values)})"
        return f"{self.path} {'==' if self.sign == '=' else self.sign} {self.values[0]}"

    def holds(self, obj: Mapping[str, Any]) -> bool:
        """Whether the object meets the condition. As in Argo, `!=` and `notin` also hold for missing values."""
        value = found(obj, self.path)
        there = value is not NOTHING
        if self.sign in ("exists", "absent"):
            return there == (self.sign == "exists")
        if self.sign in (">", "<"):
            number, bound = _number(value), float(self.values[0])
            return number is not None and (number > bound if self.sign == ">" else number < bound)
        equal = there and text(value) in self.values
        return equal if self.sign in ("=", "in") else not equal

    def stands(self, obj: Mapping[str, Any]) -> str:
        """The actual value, such as `status.phase is Pending`."""
        value = found(obj, self.path)
        return f"{self.path} is {'not there' if value is NOTHING else text(value)}"


def parse(condition: str, name: str = "condition") -> tuple[Part, ...]:
    """The parts of a condition; none for an empty one. Raises UsageError, which calls the condition `name`."""
    parts: list[Part] = []
    at = 0
    while condition[at:].strip():
        match = PART.match(condition, at)
        if not match or match.end() == at:
            raise UsageError(f"{name}: {condition[at:].strip()!r} can't be read", hint=HINT)
        parts.append(_part(match, name))
        at = match.end()
    return tuple(parts)


def found(obj: Any, path: str) -> Any:
    """The value at the path, else NOTHING."""
    for step in STEP.findall(path):
        obj = _inner(obj, step)
        if obj is NOTHING:
            break
    return obj


def text(value: Any) -> str:
    """A value as conditions compare it: true and false, whole numbers without a point, lists and maps as JSON."""
    if isinstance(value, str):
        return value
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return json.dumps(value, separators=(",", ":"))


def _part(match: re.Match[str], name: str) -> Part:
    if match["absent"]:
        return Part(match["absent"], "absent")
    if match["word"]:
        return Part(match["path"], match["word"], tuple(_plain(one) for one in match["values"].split(",")))
    if not match["sign"]:
        return Part(match["path"], "exists")
    sign, value = match["sign"].replace("==", "="), _plain(match["value"])
    if sign in "><" and _number(value) is None:
        raise UsageError(f"{name}: invalid number: {value!r}", hint=f"compare {match['path']} with one, or by ==")
    return Part(match["path"], sign, (value,))


def _plain(word: str) -> str:
    word = word.strip()
    return word[1:-1] if len(word) > 1 and word[0] == word[-1] and word[0] in "\"'" else word


def _inner(obj: Any, step: str) -> Any:
    if isinstance(obj, Mapping):
        return obj.get(step.replace("\\", ""), NOTHING)
    if not isinstance(obj, list):
        return NOTHING
    if step == "#":
        return len(obj)
    if match := ITEM.fullmatch(step):
        wanted = _plain(match["value"])
        values = ((one, found(one, match["field"])) for one in obj)
        return next((one for one, value in values if value is not NOTHING and text(value) == wanted), NOTHING)
    return obj[int(step)] if step.isdigit() and int(step) < len(obj) else NOTHING


def _number(value: Any) -> float | None:
    if isinstance(value, bool):
        return None
    try:
        return float(value)
    except (TypeError, ValueError):
        return None
