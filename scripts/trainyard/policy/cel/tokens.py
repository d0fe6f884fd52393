"""Lexer from CEL text to tokens, and the values of literals."""

import re
from collections.abc import Iterator
from typing import Any

from trainyard.policy.cel.values import CelError, Uint, whole

QUOTED = r'"""(?:[^\\]|\\.)*?"""|' + r"'''(?:[^\\]|\\.)*?'''|" + r'"(?:[^"\\\r\n]|\\.)*"|' + r"'(?:[^'\\\r\n]|\\.)*'"
RAW = r'"""(?:.)*?"""|' + r"'''(?:.)*?'''|" + r'"[^"\r\n]*"|' + r"'[^'\r\n]*'"
TOKEN = re.compile(
    rf"""[ \t\r\n\f]+ | //[^\n]*
    | (?P<text>[bB]?[rR](?:{RAW})|[bB]?(?:{QUOTED}))
    | (?P<double>[0-9]*\.[0-9]+(?:[eE][+-]?[0-9]+)?|[0-9]+[eE][+-]?[0-9]+)
    | (?P<int>(?:0x[0-9a-fA-F]+|[0-9]+)[uU]?)
    | (?P<name>[A-Za-z_][A-Za-z_0-9]*)
    | (?P<sign>\|\||&&|==|!=|<=|>=|[-+*/%!<>()\[\]{{}}.,:?])""",
    re.X | re.S,
)
ESCAPE = re.compile(
    r"\\(?:[xX](?P<byte>[0-9a-fA-F]{2})|u(?P<short>[0-9a-fA-F]{4})|U(?P<long>[0-9a-fA-F]{8})|(?P<octal>[0-3][0-7]{2})"
    r"|(?P<other>.))",
    re.S,
)
PLAIN = {
    "a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v",
    "\\": "\\", "'": "'", '"': '"', "`": "`", "?": "?",
}  # fmt: skip


def read(text: str) -> Iterator[tuple[str, str]]:
    """Yields (kind, word) of each token, then ("end", "") forever. Raises CelError."""
    place = 0
    while place < len(text):
        match = TOKEN.match(text, place)
        if match is None:
            if text[place] == "`":
                raise CelError("names in backticks are not evaluated here")
            raise CelError(f"can't read {text[place : place + 10]}")
        place = match.end()
        if match.lastgroup:
            yield match.lastgroup, match[0]
    while True:
        yield "end", ""


def literal(kind: str, word: str) -> Any:
    """Value of a token of kind `int`, `double` or `text`. Raises CelError."""
    if kind == "double":
        number = float(word)
        if number == float("inf"):
            raise CelError(f"invalid double: {word}")
        return number
    if kind == "int":
        unsigned = word[-1] in "uU"
        digits = word.rstrip("uU")
        return whole((Uint if unsigned else int)(digits, 16 if digits.startswith("0x") else 10))
    prefix = re.match("[rRbB]*", word)
    begin = prefix[0].lower() if prefix else ""
    quoted = word[len(begin) :]
    marks = 3 if quoted[:3] in ('"""', "'''") else 1
    # A Windows line ending is one character in a multi-line string, as in Go.
    inner = quoted[marks:-marks].replace("\r\n", "\n").replace("\r", "\n")
    if "b" in begin:
        return inner.encode() if "r" in begin else _bytes(inner)
    return inner if "r" in begin else ESCAPE.sub(_character, inner)


def _character(match: re.Match[str]) -> str:
    if match["other"]:
        return _plain(match["other"])
    octal = match["octal"]
    code = int(octal, 8) if octal else int(match["byte"] or match["short"] or match["long"], 16)
    if code > 0x10FFFF or 0xD800 <= code <= 0xDFFF:
        raise CelError(f"invalid character: {match[0]}")
    return chr(code)


def _bytes(inner: str) -> bytes:
    done, place = b"", 0
    for match in ESCAPE.finditer(inner):
        done += inner[place : match.start()].encode()
        place = match.end()
        if match["short"] or match["long"]:
            raise CelError(f"invalid character in bytes: {match[0]}")
        if match["other"]:
            done += _plain(match["other"]).encode()
        else:
            done += bytes([int(match["octal"], 8) if match["octal"] else int(match["byte"], 16)])
    return done + inner[place:].encode()


def _plain(sign: str) -> str:
    if sign not in PLAIN:
        raise CelError(f"unknown escape \\{sign}")
    return PLAIN[sign]
