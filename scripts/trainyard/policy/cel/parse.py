"""CEL text to a program: a function of the variables. Each part of the grammar becomes a closure."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Iterator
from typing import Any

from trainyard.policy.cel.values import (
    FUNCTIONS,
    CelError,
    add,
    at,
    call,
    contains,
    guarded,
    kind_of,
    path,
    same,
    select,
)

Scope = dict[str, Any]
Program = Callable[[Scope], Any]
TOKEN = re.compile(
    r"""\s+ | (?P<number>\d+(?:\.\d+)?) | (?P<name>[A-Za-z_]\w*)
    | (?P<text>"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')
    | (?P<sign>\|\||&&|==|!=|<=|>=|\[\?|\.\?|[-+*/%!<>()\[\]{}.,:?])""",
    re.X,
)
ESCAPES = {"n": "\n", "t": "\t", "r": "\r"}
WORDS = {"true": True, "false": False, "null": None}
TYPES = ("string", "int", "bool", "double", "list", "map")  # as values, beside type(x)
COMPARE: dict[str, Callable[[Any, Any], Any]] = {
    "<": lambda a, b: a < b,
    "<=": lambda a, b: a <= b,
    ">": lambda a, b: a > b,
    ">=": lambda a, b: a >= b,
    "*": lambda a, b: a * b,
    "/": lambda a, b: int(a / b),
    "%": lambda a, b: a % b,
    "-": lambda a, b: a - b,
}
LEVELS = (("||",), ("&&",), ("==", "!=", "<", "<=", ">", ">=", "in"), ("+", "-"), ("*", "/", "%"))
MACROS = ("map", "filter", "exists", "all")


@functools.cache
def compile(text: str) -> Program:
    """The program of an expression. CelError for what is not of the grammar."""
    parser = _Parser(text)
    program = parser.ternary()
    if parser.token[1]:
        raise CelError(f"unexpected {parser.token[1]}")
    return program


class _Parser:
    def __init__(self, text: str) -> None:
        self._tokens = self._read(text)
        self.token = next(self._tokens)

    def _read(self, text: str) -> Iterator[tuple[str, str]]:
        place = 0
        while place < len(text):
            match = TOKEN.match(text, place)
            if match is None:
                raise CelError(f"can't read {text[place : place + 10]}")
            place = match.end()
            if match.lastgroup:
                yield match.lastgroup, match[0]
        while True:
            yield "end", ""

    def _take(self, sign: str = "") -> str:
        kind, word = self.token
        if sign and word != sign:
            raise CelError(f"expected {sign}, found {word or 'the end'}")
        if kind == "end":
            raise CelError("unexpected end")
        self.token = next(self._tokens)
        return word

    def _is(self, *signs: str) -> bool:
        return self.token[0] != "text" and self.token[1] in signs

    def ternary(self) -> Program:
        condition = self._level(0)
        if not self._is("?"):
            return condition
        self._take()
        yes = self._level(0)
        self._take(":")
        no = self.ternary()
        return lambda scope: yes(scope) if _truth(condition(scope)) else no(scope)

    def _level(self, level: int) -> Program:
        if level == len(LEVELS):
            return self._unary()
        left = self._level(level + 1)
        while self._is(*LEVELS[level]):
            left = _binary(self._take(), left, self._level(level + 1))
        return left

    def _unary(self) -> Program:
        if self._is("!"):
            self._take()
            inner = self._unary()
            return lambda scope: not _truth(inner(scope))
        if self._is("-"):
            self._take()
            negated = self._unary()
            return lambda scope: -negated(scope)
        return self._member()

    def _member(self) -> Program:
        value = self._primary()
        while self._is(".", ".?", "[", "[?"):
            sign = self._take()
            if sign.startswith("["):
                key = self.ternary()
                self._take("]")
                value = _index(value, key, sign == "[?")
                continue
            name = self._take()
            if sign == "." and self._is("("):
                value = self._macro(value, name) if name in MACROS else _method(value, name, self._arguments("(", ")"))
            else:
                value = _field(value, name, sign == ".?")
        return value

    def _macro(self, value: Program, name: str) -> Program:
        self._take("(")
        variable = self._take()
        bodies = []
        while self._is(","):
            self._take()
            bodies.append(self.ternary())
        self._take(")")
        return _loop(name, value, variable, bodies)

    def _arguments(self, begin: str, end: str) -> list[Program]:
        self._take(begin)
        found: list[Program] = []
        while not self._is(end):
            found.append(self.ternary())
            if not self._is(end):
                self._take(",")
        self._take(end)
        return found

    def _primary(self) -> Program:
        kind, word = self.token
        if kind == "number":
            number = float(self._take()) if "." in word else int(self._take())
            return lambda scope: number
        if kind == "text":
            text = re.sub(r"\\(.)", lambda match: ESCAPES.get(match[1], match[1]), self._take()[1:-1], flags=re.S)
            return lambda scope: text
        if kind == "name":
            return self._name()
        if word == "(":
            self._take()
            inner = self.ternary()
            self._take(")")
            return inner
        if word == "[":
            items = self._arguments("[", "]")
            return lambda scope: [item(scope) for item in items]
        if word == "{":
            return self._map()
        raise CelError(f"unexpected {word or 'end'}")

    def _map(self) -> Program:
        self._take("{")
        pairs: list[tuple[Program, Program]] = []
        while not self._is("}"):
            key = self.ternary()
            self._take(":")
            pairs.append((key, self.ternary()))
            if not self._is("}"):
                self._take(",")
        self._take("}")
        return lambda scope: {key(scope): value(scope) for key, value in pairs}

    def _name(self) -> Program:
        name = self._take()
        if name in WORDS:
            constant = WORDS[name]
            return lambda scope: constant
        if not self._is("("):
            if name in TYPES:
                return lambda scope: name
            return lambda scope: _variable(scope, name)
        arguments = self._arguments("(", ")")
        if name == "has":
            optional = getattr(arguments[0], "optional", None) if arguments else None
            if optional is None:
                raise CelError("has() takes a selection")
            return lambda scope: optional(scope).there
        if name not in FUNCTIONS:
            raise CelError(f"no function {name}")
        function = FUNCTIONS[name]
        return lambda scope: guarded(name, function, [argument(scope) for argument in arguments])


def _variable(scope: Scope, name: str) -> Any:
    if name not in scope:
        raise CelError(f"undeclared reference to {name}")
    return scope[name]


def _truth(value: Any) -> bool:
    if not isinstance(value, bool):
        raise CelError(f"{kind_of(value)} is no bool")
    return value


def _field(value: Program, name: str, optional: bool) -> Program:
    def program(scope: Scope) -> Any:
        return select(value(scope), name, optional)

    program.optional = lambda scope: select(value(scope), name, True)  # type: ignore[attr-defined]
    return program


def _index(value: Program, key: Program, optional: bool) -> Program:
    return lambda scope: select(value(scope), key(scope), optional)


def _method(value: Program, name: str, arguments: list[Program]) -> Program:
    return lambda scope: call(value(scope), name, [argument(scope) for argument in arguments])


def _loop(name: str, value: Program, variable: str, bodies: list[Program]) -> Program:
    *tests, body = bodies

    def program(scope: Scope) -> Any:
        whole = value(scope)
        if not isinstance(whole, (list, dict)):
            raise CelError(f"no such overload: {kind_of(whole)}.{name}()")
        inner = dict(scope)
        found = []
        for item in whole:
            inner[variable] = item
            if all(_truth(test(inner)) for test in tests):
                found.append((item, body(inner)))
        if name == "map":
            return [done for _, done in found]
        if name == "filter":
            return at([item for item, done in found if _truth(done)], path(whole))
        return (any if name == "exists" else all)(_truth(done) for _, done in found)

    return program


def _binary(sign: str, left: Program, right: Program) -> Program:
    if sign in ("||", "&&"):
        return _logic(left, right, sign == "||")
    if sign in ("==", "!="):
        return lambda scope: same(left(scope), right(scope)) == (sign == "==")
    if sign == "in":
        return lambda scope: contains(left(scope), right(scope))
    if sign == "+":
        return lambda scope: add(left(scope), right(scope))
    compare = COMPARE[sign]
    return lambda scope: guarded(sign, compare, [left(scope), right(scope)])


def _logic(left: Program, right: Program, decides: bool) -> Program:
    """`||` and `&&`: the side that decides wins, also over one that fails."""

    def program(scope: Scope) -> bool:
        try:
            if _truth(left(scope)) is decides:
                return decides
        except CelError:
            if _truth(right(scope)) is decides:
                return decides
            raise
        return _truth(right(scope))

    return program
