"""Parser from CEL text to a program: a function of the variables. Each grammar rule becomes a closure."""

import functools
from collections.abc import Callable
from typing import Any

from trainyard.policy.cel.build import Entry, binary, field, index, list_of, map_of, negated, variable
from trainyard.policy.cel.functions import NAMESPACES, UNSUPPORTED, call, call_on, check
from trainyard.policy.cel.macros import BINDINGS, LOOPS, Program, binding, loop, otherwise, truth
from trainyard.policy.cel.tokens import literal, read
from trainyard.policy.cel.values import TYPES, CelError, Type, negative, whole

WORDS = {"true": True, "false": False, "null": None}
RESERVED = frozenset(
    "as break const continue else for function if import in let loop package namespace return var void while".split()  # noqa: SIM905
)
NO_FIELDS = frozenset({"true", "false", "null", "in"})
LEVELS = (("||",), ("&&",), ("==", "!=", "<", "<=", ">", ">=", "in"), ("+", "-"), ("*", "/", "%"))


@functools.cache
def compile(text: str) -> Program:
    """Compiles an expression. Raises CelError for a syntax error or an unknown function."""
    try:
        parser = _Parser(text)
        program = parser.ternary()
    except RecursionError:
        raise CelError("the expression is nested too deeply") from None
    if parser.token[0] != "end":
        raise CelError(f"unexpected {parser.token[1]}")
    return program


class _Parser:
    def __init__(self, text: str) -> None:
        self._tokens = read(text)
        self.token = next(self._tokens)

    def _take(self, sign: str = "") -> str:
        kind, word = self.token
        if sign and (kind == "text" or word != sign):
            raise CelError(f"expected {sign}, found {word or 'the end'}")
        if kind == "end":
            raise CelError("unexpected end")
        self.token = next(self._tokens)
        return word

    def _is(self, *signs: str) -> bool:
        return self.token[0] != "text" and self.token[1] in signs

    def _taken(self, sign: str) -> bool:
        """Consumes the sign if it is next."""
        if not self._is(sign):
            return False
        self._take()
        return True

    def ternary(self) -> Program:
        condition = self._level(0)
        if not self._taken("?"):
            return condition
        yes = self._level(0)
        self._take(":")
        no = self.ternary()
        return lambda scope: yes(scope) if truth(condition(scope)) else no(scope)

    def _level(self, level: int) -> Program:
        if level == len(LEVELS):
            return self._unary()
        left = self._level(level + 1)
        while self._is(*LEVELS[level]):
            left = binary(self._take(), left, self._level(level + 1))
        return left

    def _unary(self) -> Program:
        sign = self.token[1]
        if not self._is("!", "-"):
            return self._member()
        count = 0
        while self._taken(sign):
            count += 1
        if sign == "-" and self.token[0] in ("int", "double"):
            value, count = self._after(self._number(negate=True)), count - 1
        else:
            value = self._member()
        for _ in range(count):
            value = negated(sign, value)
        return value

    def _member(self) -> Program:
        if self.token[0] == "name" and self.token[1] in NAMESPACES:
            return self._after(self._namespace(self._take()))
        return self._after(self._primary())

    def _after(self, value: Program) -> Program:
        """The value with the selections, indexes and calls that follow it."""
        while self._is(".", "["):
            if self._take() == "[":
                optional = self._taken("?")
                key = self.ternary()
                self._take("]")
                value = index(value, key, optional)
                continue
            optional = self._taken("?")
            name = self._name(NO_FIELDS)
            value = field(value, name, optional) if optional or not self._is("(") else self._called(value, name)
        if self._is("{"):
            raise CelError("messages, a type before {}, are not evaluated here")
        return value

    def _name(self, refused: frozenset[str]) -> str:
        kind, word = self.token
        if kind != "name" or word in refused:
            raise CelError(f"expected a name, found {word or 'the end'}")
        return self._take()

    def _called(self, value: Program, name: str) -> Program:
        if name in LOOPS or name in BINDINGS:
            return self._macro(value, name)
        if name in UNSUPPORTED:
            raise CelError(f"{name}() of CEL is not evaluated here")
        arguments = self._arguments()
        if name in ("or", "orValue") and len(arguments) == 1:
            return otherwise(name, value, arguments[0])
        check(name, len(arguments), True)
        return lambda scope: call_on(value(scope), name, [argument(scope) for argument in arguments])

    def _macro(self, value: Program, name: str) -> Program:
        self._take("(")
        item = self._name(NO_FIELDS | RESERVED)
        bodies = []
        while self._taken(","):
            bodies.append(self.ternary())
        self._take(")")
        if len(bodies) + 1 not in LOOPS.get(name, (2,)):
            if len(bodies) == 2 and name in ("all", "exists", "exists_one"):
                raise CelError(f"{name}() with two variables is not evaluated here")
            raise CelError(f"{name}() takes a name and {' or '.join(str(n - 1) for n in LOOPS.get(name, (2,)))} more")
        return loop(name, value, item, bodies) if name in LOOPS else binding(name, value, item, bodies[0])

    def _arguments(self) -> list[Program]:
        self._take("(")
        found: list[Program] = []
        while not self._is(")") or found:
            found.append(self.ternary())
            if not self._taken(","):
                break
        self._take(")")
        return found

    def _namespace(self, space: str) -> Program:
        """`optional.of(…)`; without a call behind it, the name is a function or a variable."""
        if not self._taken("."):
            return self._named(space)
        name = f"{space}.{self._name(NO_FIELDS)}"
        if not self._is("("):
            raise CelError(f"undeclared reference to {space}")
        return self._function(name)

    def _primary(self) -> Program:
        kind, word = self.token
        if kind in ("int", "double"):
            return self._number()
        if kind == "text":
            text = literal(kind, self._take())
            return lambda scope: text
        if kind == "name":
            return self._named(self._take())
        if self._taken("("):
            inner = self.ternary()
            self._take(")")
            return inner
        if self._taken("["):
            return list_of(self._entries("]", self._entry))
        if self._taken("{"):
            return map_of(self._entries("}", self._pair))
        if self._taken("."):
            return self._named(self._name(NO_FIELDS | RESERVED))
        raise CelError(f"unexpected {word or 'end'}")

    def _number(self, negate: bool = False) -> Program:
        """A number literal; a preceding sign is part of the literal, so that the smallest int can be written."""
        kind, word = self.token
        if negate and kind == "int" and word[-1] not in "uU":
            self._take()
            smallest = whole(-int(word, 16 if word.startswith("0x") else 10))
            return lambda scope: smallest
        number = literal(kind, self._take())
        if negate:
            number = negative(number)
        return lambda scope: number

    def _entries(self, end: str, entry: Callable[[], Any]) -> list[Any]:
        found = []
        while not self._is(end):
            found.append(entry())
            if not self._taken(","):
                break
        self._take(end)
        return found

    def _entry(self) -> Entry:
        return self._taken("?"), self.ternary()

    def _pair(self) -> tuple[Entry, Program]:
        key = self._entry()
        self._take(":")
        return key, self.ternary()

    def _named(self, name: str) -> Program:
        if name in WORDS:
            constant = WORDS[name]
            return lambda scope: constant
        if name in RESERVED:
            raise CelError(f"{name} is a reserved word")
        if self._is("("):
            return self._function(name)
        if name in TYPES:
            kind = Type(name)
            return lambda scope: kind
        return lambda scope: variable(scope, name)

    def _function(self, name: str) -> Program:
        if name in UNSUPPORTED:
            raise CelError(f"{name}() of CEL is not evaluated here")
        arguments = self._arguments()
        if name == "has":
            there = getattr(arguments[0], "there", None) if len(arguments) == 1 else None
            if there is None:
                raise CelError("has() takes a selection")
            return lambda scope: there(scope)
        check(name, len(arguments), False)
        return lambda scope: call(name, [argument(scope) for argument in arguments])
