"""Operators and macros that control evaluation: `&&` and `||`, loops over lists and maps, optional values."""

from collections.abc import Callable
from typing import Any

from trainyard.policy.cel.values import CelError, Optional, at, kind_of, path

Scope = dict[str, Any]
Program = Callable[[Scope], Any]
LOOPS = {"all": (2,), "exists": (2,), "exists_one": (2,), "filter": (2,), "map": (2, 3)}  # name -> arguments
BINDINGS = ("optMap", "optFlatMap")


def truth(value: Any) -> bool:
    """The value, which must be a bool."""
    if not isinstance(value, bool):
        raise CelError(f"expected a bool, got {kind_of(value)}")
    return value


def logic(left: Program, right: Program, decides: bool) -> Program:
    """`||` and `&&`: the operand that decides the result wins, even if the other fails."""

    def program(scope: Scope) -> bool:
        try:
            if truth(left(scope)) is decides:
                return decides
        except CelError:
            if truth(right(scope)) is decides:
                return decides
            raise
        return truth(right(scope))

    return program


def loop(name: str, value: Program, variable: str, bodies: list[Program]) -> Program:
    """The macro `name` over the items of a list or the keys of a map."""
    fold = {"all": _decided(False), "exists": _decided(True), "exists_one": _one, "filter": _filter, "map": _map}[name]

    def program(scope: Scope) -> Any:
        items = value(scope)
        if not isinstance(items, (list, dict)):
            raise CelError(f"no such overload: {kind_of(items)}.{name}()")
        inner = dict(scope)

        def of(item: Any, body: Program) -> Any:
            inner[variable] = item
            return body(inner)

        return fold(items, bodies, of)

    return program


Of = Callable[[Any, Program], Any]


def _decided(decides: bool) -> Callable[[Any, list[Program], Of], bool]:
    """`exists` and `all`: an item that decides the result wins, even if earlier items fail."""

    def fold(items: Any, bodies: list[Program], of: Of) -> bool:
        failed = None
        for item in items:
            try:
                if truth(of(item, bodies[0])) is decides:
                    return decides
            except CelError as error:
                failed = failed or error
        if failed:
            raise failed
        return not decides

    return fold


def _one(items: Any, bodies: list[Program], of: Of) -> bool:
    return sum([truth(of(item, bodies[0])) for item in items]) == 1


def _filter(items: Any, bodies: list[Program], of: Of) -> Any:
    return at([item for item in items if truth(of(item, bodies[0]))], path(items))


def _map(items: Any, bodies: list[Program], of: Of) -> list[Any]:
    *tests, body = bodies
    return [of(item, body) for item in items if all(truth(of(item, test)) for test in tests)]


def binding(name: str, value: Program, variable: str, body: Program) -> Program:
    """`optMap` and `optFlatMap`: evaluates the body with the content of an optional value."""

    def program(scope: Scope) -> Any:
        optional = value(scope)
        if not isinstance(optional, Optional):
            raise CelError(f"no such overload: {kind_of(optional)}.{name}()")
        if not optional.there:
            return Optional()
        found = body({**scope, variable: optional.value})
        return Optional(found, True, path(found)) if name == "optMap" else found

    return program


def otherwise(name: str, value: Program, other: Program) -> Program:
    """`or` and `orValue`: evaluates the alternative only if the optional value is missing."""

    def program(scope: Scope) -> Any:
        found = value(scope)
        if not isinstance(found, Optional):
            return found
        if found.there:
            return found if name == "or" else found.value
        second = other(scope)
        return second if name == "or" else at(second, found.path)

    return program
