"""Programs composed of programs: selections, indexes, operators, list and map literals."""

import functools
from collections.abc import Callable
from typing import Any

from trainyard.policy.cel.macros import Program, Scope, logic, truth
from trainyard.policy.cel.values import (
    CelError,
    Optional,
    add,
    arithmetic,
    contains,
    kind_of,
    negative,
    order,
    same,
    select,
)

BINARY: dict[str, Callable[[Any, Any], Any]] = {
    "==": same,
    "!=": lambda one, other: not same(one, other),
    "<": lambda one, other: order(one, other) < 0,
    "<=": lambda one, other: order(one, other) <= 0,
    ">": lambda one, other: order(one, other) > 0,
    ">=": lambda one, other: order(one, other) >= 0,
    "in": contains,
    "+": add,
    **{sign: functools.partial(arithmetic, sign) for sign in "-*/%"},
}
Entry = tuple[bool, Program]  # whether a `?` precedes the entry


def variable(scope: Scope, name: str) -> Any:
    if name not in scope:
        raise CelError(f"undeclared reference to {name}")
    return scope[name]


def negated(sign: str, value: Program) -> Program:
    return (lambda scope: not truth(value(scope))) if sign == "!" else (lambda scope: negative(value(scope)))


def field(value: Program, name: str, optional: bool) -> Program:
    def program(scope: Scope) -> Any:
        return select(value(scope), name, optional)

    if not optional:
        program.there = lambda scope: select(value(scope), name, True).there  # type: ignore[attr-defined]
    return program


def index(value: Program, key: Program, optional: bool) -> Program:
    return lambda scope: select(value(scope), key(scope), optional)


def _given(optional: bool, value: Any) -> list[Any]:
    """The value in a list; the list is empty for a missing optional entry."""
    if not optional:
        return [value]
    if not isinstance(value, Optional):
        raise CelError(f"cannot initialize an optional entry from {kind_of(value)}")
    return [value.value] if value.there else []


def list_of(entries: list[Entry]) -> Program:
    return lambda scope: [one for optional, item in entries for one in _given(optional, item(scope))]


def map_of(pairs: list[tuple[Entry, Program]]) -> Program:
    def program(scope: Scope) -> dict[Any, Any]:
        made: dict[Any, Any] = {}
        for (optional, key), value in pairs:
            name = key(scope)
            if kind_of(name) == "bool":
                raise CelError("maps with a bool as key are not evaluated here")
            if kind_of(name) not in ("string", "int", "uint"):
                raise CelError(f"unsupported key type: {kind_of(name)}")
            for one in _given(optional, value(scope)):
                if kind_of(next((key for key in made if key == name), name)) != kind_of(name):
                    raise CelError("maps with one number as two keys are not evaluated here")
                made[name] = one
        return made

    return program


def binary(sign: str, left: Program, right: Program) -> Program:
    if sign in ("||", "&&"):
        return logic(left, right, sign == "||")
    function = BINARY[sign]
    return lambda scope: function(left(scope), right(scope))
