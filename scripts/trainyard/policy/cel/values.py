"""Values of CEL as Python's own, those of an object with their path in it; optional values, and what may be called."""

from __future__ import annotations

import re
from collections.abc import Callable
from decimal import Decimal, InvalidOperation
from typing import Any

Path = tuple[str | int, ...]
SUFFIXES = {"": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18, "m": -3, "u": -6, "n": -9}


class CelError(Exception):
    """The expression can't be evaluated; an API server refuses the request then."""


class Text(str):
    """A string of an object."""

    path: Path = ()


class Number(int):
    """A whole number of an object."""

    path: Path = ()


class Map(dict):
    """A map of an object."""

    path: Path = ()


class Items(list):
    """A list of an object."""

    path: Path = ()


class Optional:
    """A value that may be missing; `path` says where it would be."""

    def __init__(self, value: Any = None, there: bool = False, path: Path | None = None) -> None:
        self.value, self.there, self.path = value, there, path


def at(value: Any, path: Path | None) -> Any:
    """The value with that path, where its type can carry one."""
    if path is None or isinstance(value, bool):
        return value
    kinds: tuple[tuple[type[Any], type[Any]], ...] = ((Text, str), (Number, int), (Map, dict), (Items, list))
    for kind, base in kinds:
        if isinstance(value, base):
            marked = kind(value)
            marked.path = path
            return marked
    return value


def place(value: Any, path: Path = ()) -> Any:
    """A copy of an object whose every part knows its path."""
    if isinstance(value, dict):
        return at({str(key): place(one, (*path, str(key))) for key, one in value.items()}, path)
    if isinstance(value, list):
        return at([place(one, (*path, index)) for index, one in enumerate(value)], path)
    return at(value, path)


def path(value: Any) -> Path | None:
    """Where in the object the value, or most of a text, comes from."""
    return getattr(value, "path", None)


def select(value: Any, key: Any, optional: bool = False) -> Any:
    """`value.key` or `value[key]`; with `optional`, or on an optional value, an Optional."""
    if isinstance(value, Optional):
        if not value.there:
            here = None if value.path is None else (*value.path, key)
            return Optional(path=here)
        return select(value.value, key, True)
    here = path(value)
    place_of = None if here is None else (*here, key)
    if isinstance(value, dict):
        found = key in value and value[key] is not None
        if optional:
            return Optional(value[key], True, place_of) if found else Optional(path=place_of)
        if not found:
            raise CelError(f"no such key: {key}")
        return value[key]
    if isinstance(value, list) and isinstance(key, int) and not isinstance(key, bool):
        if 0 <= key < len(value):
            return Optional(value[key], True, place_of) if optional else value[key]
        if optional:
            return Optional(path=place_of)
        raise CelError(f"index out of bounds: {key}")
    if optional and value is None:
        return Optional(path=place_of)
    if hasattr(value, "cel_select"):
        return value.cel_select(key)
    raise CelError(f"{kind_of(value)} has no field {key}")


def kind_of(value: Any) -> str:
    """The name of a value's type in CEL."""
    names = {
        bool: "bool",
        int: "int",
        float: "double",
        str: "string",
        dict: "map",
        list: "list",
        type(None): "null_type",
    }
    return next((name for kind, name in names.items() if isinstance(value, kind)), type(value).__name__)


def same(one: Any, other: Any) -> bool:
    """CEL's equality: values of different types differ, `1` and `true` too."""
    if isinstance(one, Optional) and isinstance(other, Optional):
        return one.there == other.there and (not one.there or same(one.value, other.value))
    if isinstance(one, bool) != isinstance(other, bool):
        return False
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(same(value, other[key]) for key, value in one.items())
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(same, one, other))
    return bool(one == other)


def add(one: Any, other: Any) -> Any:
    """`one + other`; a text keeps the longer of the two paths, the later one of two of a length."""
    if isinstance(one, bool) or isinstance(other, bool) or kind_of(one) != kind_of(other):
        raise CelError(f"no such overload: {kind_of(one)} + {kind_of(other)}")
    if isinstance(one, str):
        return at(str(one) + str(other), _deeper(path(one), path(other)))
    if isinstance(one, list):
        return list(one) + list(other)
    if isinstance(one, (int, float)):
        return one + other
    raise CelError(f"no such overload: {kind_of(one)} + {kind_of(other)}")


def _deeper(one: Path | None, other: Path | None) -> Path | None:
    if one is None or (other is not None and len(other) >= len(one)):
        return other
    return one


def contains(item: Any, whole: Any) -> bool:
    """`item in whole`."""
    if isinstance(whole, dict):
        return item in whole
    if isinstance(whole, list):
        return any(same(item, one) for one in whole)
    raise CelError(f"no such overload: in {kind_of(whole)}")


def amount(text: Any) -> Decimal:
    """A Kubernetes quantity such as `2`, `500m` or `16Gi`. Raises CelError."""
    match = re.fullmatch(r"([+-]?[0-9.]+)(?:([KMGTPE])i|([kMGTPEmun]?)|[eE]([+-]?\d+))", str(text))
    try:
        if not match:
            raise InvalidOperation
        number = Decimal(match[1])
    except InvalidOperation:
        raise CelError(f"{text} is no quantity") from None
    if match[2]:
        return number * 1024 ** ("KMGTPE".index(match[2]) + 1)
    return number * Decimal(10) ** (int(match[4]) if match[4] else SUFFIXES[match[3]])


def to_int(value: Any) -> int:
    """`int(value)`."""
    try:
        return at(int(value), path(value))
    except (TypeError, ValueError, OverflowError):
        raise CelError(f"{kind_of(value)} is no int") from None


def to_string(value: Any) -> str:
    """`string(value)`."""
    text = str(value).lower() if isinstance(value, bool) else str(value)
    return at(text, path(value))


def _whole(value: Decimal) -> int:
    if value != int(value):
        raise CelError(f"{value} is no whole number")
    return int(value)


def _matches(text: str, pattern: str) -> bool:
    return re.search(pattern.replace("(?i)", ""), text, re.IGNORECASE if "(?i)" in pattern else 0) is not None


FUNCTIONS: dict[str, Callable[..., Any]] = {
    "dyn": lambda value: value,
    "int": to_int,
    "string": to_string,
    "type": lambda value: kind_of(value),
    "quantity": amount,
    "size": len,
}
# (type of the receiver, name) -> what it does.
METHODS: dict[tuple[type, str], Callable[..., Any]] = {
    (str, "split"): lambda text, by: text.split(by),
    (str, "startsWith"): lambda text, part: text.startswith(part),
    (str, "endsWith"): lambda text, part: text.endswith(part),
    (str, "contains"): lambda text, part: part in text,
    (str, "matches"): _matches,
    (str, "trim"): lambda text: at(text.strip(), path(text)),
    (str, "size"): len,
    (list, "size"): len,
    (dict, "size"): len,
    (list, "join"): lambda items, by="": by.join(items),
    (list, "sum"): lambda items: sum(items),
    (list, "max"): lambda items: max(items),
    (list, "min"): lambda items: min(items),
    (Optional, "hasValue"): lambda one: one.there,
    (Optional, "orValue"): lambda one, other: one.value if one.there else at(other, one.path),
    (Optional, "or"): lambda one, other: one if one.there else other,
    (Decimal, "compareTo"): lambda one, other: (one > other) - (one < other),
    (Decimal, "asInteger"): _whole,
    (Decimal, "isGreaterThan"): lambda one, other: one > other,
    (Decimal, "isLessThan"): lambda one, other: one < other,
}


def call(receiver: Any, name: str, arguments: list[Any]) -> Any:
    """`receiver.name(arguments)`. Raises CelError for one that is not there or fails."""
    for (kind, known), method in METHODS.items():
        if known == name and isinstance(receiver, kind):
            return guarded(name, method, [receiver, *arguments])
    if hasattr(receiver, "cel_call"):
        return receiver.cel_call(name, arguments)
    raise CelError(f"no such overload: {kind_of(receiver)}.{name}()")


def guarded(name: str, function: Callable[..., Any], arguments: list[Any]) -> Any:
    """Calls it; what Python says of wrong arguments is a CelError."""
    try:
        return function(*arguments)
    except (TypeError, ValueError, re.error) as error:
        raise CelError(f"{name}(): {error}") from None
