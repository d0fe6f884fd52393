"""kfp's conditions (a small part of CEL) as Argo expressions."""

import re
from collections.abc import Callable

from trainyard.pipelines.translate.values import Value, quoted

_TOKEN = re.compile(
    r"""\s*(?:
      inputs\.parameter_values\[(?P<q>['"])(?P<name>.+?)(?P=q)\]
    | inputs\.parameters\[(?P<p>['"])(?P<old>.+?)(?P=p)\]\.(?P<kind>string|int|double)_value
    | (?P<string>'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*")
    | (?P<number>\d+(?:\.\d+)?(?:[eE][-+]?\d+)?)
    | (?P<word>true|false|int|double|string)\b
    | (?P<sign>&&|\|\||==|!=|<=|>=|<|>|!|-|\(|\))
    )""",
    re.VERBOSE,
)
_WORDS = {"int": "int", "double": "float", "string": "string", "true": "true", "false": "false"}
_NUMBERS = ("NUMBER_INTEGER", "NUMBER_DOUBLE")
_KINDS = {"string": "STRING", "int": "NUMBER_INTEGER", "double": "NUMBER_DOUBLE"}


class UnknownConditionError(Exception):
    """A condition that can't be parsed; the text is the rest at which parsing stopped."""


def code(condition: str, value: Callable[[str], Value], kind: Callable[[str], str]) -> str:
    """The condition as an expression with a boolean result.

    Args:
        value: returns the source of an input.
        kind: returns its type; an input arrives as text and is compared by its type.

    Raises:
        UnknownConditionError: with the part that isn't understood.
    """
    found, at, text = [], 0, condition.strip()
    while at < len(text):
        match = _TOKEN.match(text, at)
        if match is None:
            raise UnknownConditionError(text[at:].strip())
        at = match.end()
        if name := match["name"] or match["old"]:
            found.append(_typed(value(name).code, _KINDS.get(match["kind"] or "") or kind(name)))
        elif match["string"]:
            found.append(quoted(_unescaped(match["string"][1:-1])))
        elif match["word"]:
            found.append(_WORDS[match["word"]])
        else:
            found.append(match["number"] or match["sign"])
        while at < len(text) and text[at].isspace():
            at += 1
    return " ".join(found)


def _typed(code: str, kind: str) -> str:
    if kind in _NUMBERS:
        return f"float({code})"
    if kind == "BOOLEAN":
        return f'(lower({code}) == "true")'
    return code


def _unescaped(text: str) -> str:
    return re.sub(r"\\(.)", lambda m: {"n": "\n", "t": "\t", "r": "\r"}.get(m[1], m[1]), text)
