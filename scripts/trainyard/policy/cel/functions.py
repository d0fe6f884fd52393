"""Functions: CEL's own, and those of Kubernetes' additions that need no cluster."""

import functools
import itertools
import re
from collections.abc import Callable
from typing import Any

import re2

from trainyard.policy.cel import quantity
from trainyard.policy.cel.strings import (
    LOWER,
    SPACE,
    UPPER,
    character,
    find,
    find_last,
    split,
    substring,
    to_bool,
    to_double,
    to_int,
    to_string,
    to_uint,
)
from trainyard.policy.cel.values import CelError, Optional, Type, add, at, kind_of, order, path, same

# CEL and Kubernetes have these functions, which no rule of the platform needs; the error names the function.
UNSUPPORTED = frozenset(
    """
    timestamp duration getDate getDayOfMonth getDayOfWeek getDayOfYear getFullYear getHours getMilliseconds getMinutes
    getMonth getSeconds url isURL getScheme getHost getHostname getPort getEscapedPath getQuery ip isIP ip.isCanonical
    family isUnspecified isLoopback isLinkLocalMulticast isLinkLocalUnicast isGlobalUnicast cidr isCIDR containsIP
    containsCIDR masked prefixLength semver isSemver major minor patch format.named validate format sets.contains
    sets.equivalent sets.intersects strings.quote optional.unwrap unwrapOpt transformList transformMap
    transformMapEntry jsonpatch.escapeKey
    """.split()  # noqa: SIM905
)
# OF_HOST: methods that the caller's values may implement (`cel_call`), for Kubernetes' authorizer.
ORDERED = ("bool", "bytes", "double", "int", "string", "uint")
OF_HOST = frozenset("path group serviceAccount resource subresource namespace name check allowed reason".split())  # noqa: SIM905


def _join(items: list[Any], by: str = "") -> str:
    if any(kind_of(item) != "string" for item in items):
        raise CelError("no such overload: join() of a value that is not a string")
    return by.join(items)


def _sum(items: list[Any]) -> Any:
    total: Any = 0
    for index, item in enumerate(items):
        if kind_of(item) not in ("int", "uint", "double"):
            raise CelError(f"no such overload: sum() of {kind_of(item)}")
        total = add(total, item) if index else item
    return total


def _order(one: Any, other: Any) -> int:
    """Like `order`, but for items of one list: items that can't be ordered count as equal."""
    try:
        return order(one, other)
    except CelError:
        return 0


def _ordered(items: list[Any]) -> list[Any]:
    if any(kind_of(item) not in ORDERED for item in items):
        raise CelError("no such overload: order of items")
    return items


def _extreme(name: str, sign: int) -> Callable[[list[Any]], Any]:
    def method(items: list[Any]) -> Any:
        if not items:
            raise CelError(f"{name} called on empty list")
        return functools.reduce(lambda found, item: item if _order(item, found) == sign else found, _ordered(items))

    return method


def _found(items: list[Any], item: Any, last: bool = False) -> int:
    places = [index for index, one in enumerate(items) if same(one, item)]
    return (places[-1] if last else places[0]) if places else -1


def _value(one: Optional) -> Any:
    if not one.there:
        raise CelError("optional.none() dereference")
    return one.value


@functools.cache
def compiled(pattern: str) -> Any:
    """The compiled RE2 pattern, with Go's semantics. Raises CelError if RE2 rejects it."""
    options = re2.Options()
    options.log_errors = False
    try:
        return re2.compile(pattern, options)
    except re2.error as error:
        raise CelError(f"invalid regular expression {pattern}: {error.args[0].decode()}") from None


def _matched(text: str, pattern: str, most: int = -1) -> list[str]:
    """All matches as in Go: an empty match right after the previous match is skipped."""
    found, end = [], -1
    for match in compiled(pattern).finditer(text):
        if match[0] or match.start() != end:
            found.append(match[0])
        end = match.end()
    return found if most < 0 else found[:most]


# Keyed by name and argument types; `*` is any type. A prefix with a dot is the type of the receiver.
OVERLOADS: dict[str, Callable[..., Any]] = {
    "dyn(*)": lambda value: value,
    "type(*)": lambda value: Type(kind_of(value)),
    **{f"int({kind})": to_int for kind in ("int", "uint", "double", "string")},
    **{f"uint({kind})": to_uint for kind in ("int", "uint", "double", "string")},
    **{f"double({kind})": to_double for kind in ("int", "uint", "double", "string")},
    **{f"string({kind})": to_string for kind in ("int", "uint", "double", "string", "bool", "bytes")},
    "bool(bool)": lambda value: value,
    "bool(string)": to_bool,
    "bytes(bytes)": lambda value: value,
    "bytes(string)": lambda value: value.encode(),
    **{f"size({kind})": len for kind in ("string", "bytes", "list", "map")},
    **{f"{kind}.size()": len for kind in ("string", "bytes", "list", "map")},
    "optional.of(*)": lambda value: Optional(value, True, path(value)),
    "optional.none()": Optional,
    "optional.ofNonZeroValue(*)": lambda value: Optional(value, True, path(value)) if value else Optional(),
    "optional_type.hasValue()": lambda one: one.there,
    "optional_type.value()": _value,
    "string.contains(string)": lambda text, part: part in text,
    "string.startsWith(string)": lambda text, part: text.startswith(part),
    "string.endsWith(string)": lambda text, part: text.endswith(part),
    "string.matches(string)": lambda text, pattern: compiled(pattern).search(text) is not None,
    "matches(string,string)": lambda text, pattern: compiled(pattern).search(text) is not None,
    "string.find(string)": lambda text, pattern: next(iter(_matched(text, pattern)), ""),
    "string.findAll(string)": _matched,
    "string.findAll(string,int)": _matched,
    "string.split(string)": split,
    "string.split(string,int)": split,
    "string.trim()": lambda text: at(text.strip(SPACE), path(text)),
    "string.lowerAscii()": lambda text: at(text.translate(LOWER), path(text)),
    "string.upperAscii()": lambda text: at(text.translate(UPPER), path(text)),
    "string.replace(string,string)": lambda text, old, new: text.replace(old, new),
    "string.replace(string,string,int)": lambda text, old, new, most: text.replace(old, new, most),
    "string.substring(int)": substring,
    "string.substring(int,int)": substring,
    "string.charAt(int)": character,
    "string.indexOf(string)": find,
    "string.indexOf(string,int)": find,
    "string.lastIndexOf(string)": find_last,
    "string.lastIndexOf(string,int)": find_last,
    "list.join()": _join,
    "list.join(string)": _join,
    "list.sum()": _sum,
    "list.max()": _extreme("max", 1),
    "list.min()": _extreme("min", -1),
    "list.isSorted()": lambda items: all(_order(*pair) <= 0 for pair in itertools.pairwise(_ordered(items))),
    "list.indexOf(*)": _found,
    "list.lastIndexOf(*)": lambda items, item: _found(items, item, True),
    "list.first()": lambda items: Optional(items[0], True) if items else Optional(),
    "list.flatten()": lambda items: [one for item in items for one in (item if isinstance(item, list) else [item])],
    "list.distinct()": lambda items: [item for n, item in enumerate(items) if _found(items, item) == n],
    "lists.range(int)": lambda count: list(range(count)),
    "list.last()": lambda items: Optional(items[-1], True) if items else Optional(),
    "quantity(string)": quantity.parse,
    "isQuantity(string)": quantity.is_amount,
    "sign(kubernetes.Quantity)": lambda one: int(one.number > 0) - int(one.number < 0),
    "kubernetes.Quantity.compareTo(kubernetes.Quantity)": quantity.order,
    "kubernetes.Quantity.isGreaterThan(kubernetes.Quantity)": lambda one, other: quantity.order(one, other) > 0,
    "kubernetes.Quantity.isLessThan(kubernetes.Quantity)": lambda one, other: quantity.order(one, other) < 0,
    "kubernetes.Quantity.isInteger()": quantity.is_whole,
    "kubernetes.Quantity.asInteger()": quantity.as_int,
    "kubernetes.Quantity.asApproximateFloat()": quantity.as_float,
    **{f"kubernetes.Quantity.add({kind})": quantity.add for kind in ("int", "kubernetes.Quantity")},
    **{
        f"kubernetes.Quantity.sub({kind})": functools.partial(quantity.add, sign=-1)
        for kind in ("int", "kubernetes.Quantity")
    },
}
_SHAPE = re.compile(r"((?:\w+\.)*)(\w+)\((.*)\)")
# Prefixes that are namespaces of functions, not types of receivers.
NAMESPACES = frozenset({"optional", "lists", "sets", "strings", "ip", "format", "jsonpatch"})


def _known() -> tuple[set[tuple[str, int]], set[tuple[str, int]]]:
    functions, methods = set(), set()
    for overload in OVERLOADS:
        match = _SHAPE.fullmatch(overload)
        assert match
        count = len(match[3].split(",")) if match[3] else 0
        if not match[1]:
            functions.add((match[2], count))
        elif match[1][:-1] in NAMESPACES:
            functions.add((match[1] + match[2], count))
        else:
            methods.add((match[2], count))
    return functions, methods


FUNCTIONS, METHODS = _known()


def check(name: str, count: int, method: bool) -> None:
    """Raises CelError unless a function, or a method, of that name accepts that number of arguments."""
    if (method and name in OF_HOST) or (name, count) in (METHODS if method else FUNCTIONS):
        return
    if name in UNSUPPORTED:
        raise CelError(f"{name}() of CEL is not evaluated here")
    raise CelError(f"no function {'.' if method else ''}{name}() with {count} arguments")


def call(name: str, arguments: list[Any]) -> Any:
    """`name(arguments)`. Raises CelError."""
    return _call(name, arguments)


def call_on(receiver: Any, name: str, arguments: list[Any]) -> Any:
    """`receiver.name(arguments)`. Raises CelError."""
    if hasattr(receiver, "cel_call"):
        return receiver.cel_call(name, arguments)
    return _call(f"{kind_of(receiver)}.{name}", arguments, receiver)


def _call(name: str, arguments: list[Any], *receiver: Any) -> Any:
    shape = f"{name}({','.join(map(kind_of, arguments))})"
    function = OVERLOADS.get(shape) or (OVERLOADS.get(f"{name}(*)") if len(arguments) == 1 else None)
    if function is None:
        raise CelError(f"no such overload: {shape}")
    return function(*receiver, *arguments)
