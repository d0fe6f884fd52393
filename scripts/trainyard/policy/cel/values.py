"""Values of CEL as Python values, with their path if they are part of an object; types, equality, order, arithmetic."""

import math
from dataclasses import dataclass
from typing import Any

Path = tuple[str | int, ...]


class CelError(Exception):
    """The expression can't be evaluated; an API server would reject the request."""


class Text(str):
    """A string of an object."""

    path: Path = ()


class Number(int):
    """An integer of an object."""

    path: Path = ()


class Map(dict):
    """A map of an object."""

    path: Path = ()


class Items(list):
    """A list of an object."""

    path: Path = ()


class Uint(int):
    """An unsigned integer."""


@dataclass(frozen=True)
class Type:
    """A type as a value, as returned by `type(x)`."""

    name: str


class Optional:
    """A value that may be missing; `path` is where it would be."""

    def __init__(self, value: Any = None, there: bool = False, path: Path | None = None) -> None:
        self.value, self.there, self.path = value, there, path


KINDS: dict[type, str] = {
    bool: "bool",
    Uint: "uint",
    int: "int",
    float: "double",
    str: "string",
    bytes: "bytes",
    dict: "map",
    list: "list",
    type(None): "null_type",
    Type: "type",
    Optional: "optional_type",
}
NUMBERS = ("int", "uint", "double")
TYPES = ("bool", "bytes", "double", "int", "list", "map", "null_type", "string", "type", "uint")  # names of types


def kind_of(value: Any) -> str:
    """Name of a value's type in CEL."""
    python: type = type(value)
    return KINDS.get(python) or _kind(python)


def _kind(python: type) -> str:
    KINDS[python] = next((KINDS[one] for one in python.__mro__ if one in KINDS), python.__name__)
    return KINDS[python]


def at(value: Any, path: Path | None) -> Any:
    """The value with that path, if its type can hold one."""
    if path is None or isinstance(value, (bool, Uint)):
        return value
    kinds: tuple[tuple[type[Any], type[Any]], ...] = ((Text, str), (Number, int), (Map, dict), (Items, list))
    for kind, base in kinds:
        if isinstance(value, base):
            marked = kind(value)
            marked.path = path
            return marked
    return value


def place(value: Any, path: Path = ()) -> Any:
    """A copy of an object in which every part has its path. Nulls in maps are omitted, as by the API server."""
    if isinstance(value, dict):
        there = {str(key): one for key, one in value.items() if one is not None}
        return at({key: place(one, (*path, key)) for key, one in there.items()}, path)
    if isinstance(value, list):
        return at([place(one, (*path, index)) for index, one in enumerate(value)], path)
    return at(value, path)


def path(value: Any) -> Path | None:
    """Path in the object of the value, or of most of a text."""
    return getattr(value, "path", None)


def select(value: Any, key: Any, optional: bool = False) -> Any:
    """`value.key` or `value[key]`; an Optional if `optional` is set or the value is one."""
    if isinstance(value, Optional):
        if not value.there:
            here = None if value.path is None else (*value.path, key)
            return Optional(path=here)
        return select(value.value, key, True)
    here = path(value)
    place_of = None if here is None else (*here, key)
    if isinstance(value, dict):
        if held(value, key):
            return Optional(value[key], True, place_of) if optional else value[key]
    elif isinstance(value, list):
        index = _index(key)
        if 0 <= index < len(value):
            return Optional(value[index], True, place_of) if optional else value[index]
    elif hasattr(value, "cel_select"):
        chosen = value.cel_select(key)
        return Optional(chosen, True, path(chosen)) if optional else chosen
    elif not optional:
        raise CelError(f"{kind_of(value)} has no field {key}")
    if optional:
        return Optional(path=place_of)
    raise CelError(f"no such key: {key}" if isinstance(value, dict) else f"index out of bounds: {key}")


def _index(key: Any) -> int:
    if kind_of(key) not in NUMBERS or key != key or math.isinf(key) or int(key) != key:
        raise CelError(f"no such overload: list[{kind_of(key)}]")
    return int(key)


def held(whole: dict[Any, Any], key: Any) -> bool:
    """Whether the map has the key. `1` and `1.0` are the same key, `true` is neither."""
    return kind_of(key) in ("string", *NUMBERS) and key in whole


def same(one: Any, other: Any) -> bool:
    """CEL's equality: values of different types differ, even `1` and `true`; numbers are equal as numbers."""
    kinds = kind_of(one), kind_of(other)
    if kinds[0] in NUMBERS and kinds[1] in NUMBERS:
        return bool(float(one) == float(other) if "double" in kinds else one == other)
    if kinds[0] != kinds[1]:
        return False
    if isinstance(one, Optional):
        return one.there == other.there and (not one.there or same(one.value, other.value))
    if isinstance(one, dict):
        return len(one) == len(other) and all(key in other and same(value, other[key]) for key, value in one.items())
    if isinstance(one, list):
        return len(one) == len(other) and all(map(same, one, other))
    return bool(one == other)


def contains(item: Any, whole: Any) -> bool:
    """`item in whole`."""
    if isinstance(whole, dict):
        return held(whole, item)
    if isinstance(whole, list):
        return any(same(item, one) for one in whole)
    raise CelError(f"no such overload: in {kind_of(whole)}")


def order(one: Any, other: Any) -> int:
    """-1, 0 or 1: the order of two values. Raises CelError if CEL defines none."""
    kinds = kind_of(one), kind_of(other)
    if kinds[0] in NUMBERS and kinds[1] in NUMBERS:
        if "double" in kinds:
            one, other = float(one), float(other)
        if one != one or other != other:
            raise CelError("NaN values cannot be ordered")
    elif kinds[0] != kinds[1] or kinds[0] not in ("bool", "string", "bytes"):
        raise CelError(f"no such overload: {kinds[0]} < {kinds[1]}")
    return int(one > other) - int(one < other)


def add(one: Any, other: Any) -> Any:
    """`one + other`; a text keeps the path of its longer operand, or of the second if both are equally long."""
    kind = kind_of(one)
    if kind == kind_of(other):
        if kind == "string":
            return at(str(one) + str(other), _deeper(path(one), path(other)))
        if kind == "list":
            return list(one) + list(other)
        if kind == "bytes":
            return one + other
    return arithmetic("+", one, other)


def _deeper(one: Path | None, other: Path | None) -> Path | None:
    if one is None or (other is not None and len(other) >= len(one)):
        return other
    return one


def arithmetic(sign: str, one: Any, other: Any) -> Any:
    """`+ - * / %` of two numbers of one type, as in Go: rounded towards zero, and an overflow is an error."""
    kind = kind_of(one)
    if kind != kind_of(other) or kind not in NUMBERS or (kind == "double" and sign == "%"):
        raise CelError(f"no such overload: {kind} {sign} {kind_of(other)}")
    if kind == "double":
        return _double(sign, float(one), float(other))
    left, right = int(one), int(other)
    if sign in "/%":
        if right == 0:
            raise CelError("division by zero" if sign == "/" else "modulus by zero")
        quotient = abs(left) // abs(right) * (1 if (left < 0) == (right < 0) else -1)
        whole(quotient)  # the smallest int divided by -1 overflows, also for the remainder
        result = quotient if sign == "/" else left - quotient * right
    else:
        result = left + right if sign == "+" else left - right if sign == "-" else left * right
    return whole(Uint(result) if kind == "uint" else result)


def _double(sign: str, one: float, other: float) -> float:
    if sign == "/":
        if other == 0:
            return math.nan if one == 0 or one != one else math.copysign(math.inf, one) * math.copysign(1, other)
        return one / other
    return one + other if sign == "+" else one - other if sign == "-" else one * other


def negative(value: Any) -> Any:
    """`-value`."""
    if kind_of(value) not in ("int", "double"):
        raise CelError(f"no such overload: -{kind_of(value)}")
    return -float(value) if isinstance(value, float) else whole(-int(value))


def whole(value: int) -> int:
    """The value, if it fits in 64 bits. Raises CelError otherwise."""
    low, high = (0, 2**64) if isinstance(value, Uint) else (-(2**63), 2**63)
    if not low <= value < high:
        raise CelError(f"{kind_of(value)} overflow")
    return value
