"""Type conversions and string functions; positions count characters, as in CEL."""

import math
import re
from decimal import Decimal
from typing import Any

from trainyard.policy.cel.values import CelError, Uint, at, path, whole

# Go's white space.
SPACE = "\t\n\v\f\r \x85\xa0\u1680\u2028\u2029\u202f\u205f\u3000" + "".join(map(chr, range(0x2000, 0x200B)))
BOOLS = {
    **dict.fromkeys(("1", "t", "T", "true", "TRUE", "True"), True),
    **dict.fromkeys(("0", "f", "F", "false", "FALSE", "False"), False),
}
DIGITS = "[0-9](?:_?[0-9])*"
DOUBLE = re.compile(
    rf"[+-]?(?:(?:{DIGITS}\.?(?:{DIGITS})?|\.{DIGITS})(?:e[+-]?{DIGITS})?|inf|infinity)|nan", re.IGNORECASE | re.ASCII
)
UPPER = {code: code - 32 for code in range(ord("a"), ord("z") + 1)}
LOWER = {small: big for big, small in UPPER.items()}


def to_int(value: Any) -> int:
    if isinstance(value, float):
        if not -(2.0**63) < value < 2.0**63:
            raise CelError("int overflow")
    elif isinstance(value, str) and not re.fullmatch("[+-]?[0-9]+", value):
        raise CelError(f"invalid int: {value or 'an empty string'}")
    number: int = at(whole(int(value)), path(value))
    return number


def to_uint(value: Any) -> Uint:
    if isinstance(value, float) and not 0 <= value < 2.0**64:
        raise CelError("uint overflow")
    if isinstance(value, str) and not re.fullmatch("[0-9]+", value):
        raise CelError(f"invalid uint: {value or 'an empty string'}")
    number = Uint(value)
    whole(number)
    return number


def to_double(value: Any) -> float:
    if isinstance(value, str):
        if value.lstrip("+-")[:2] in ("0x", "0X"):
            raise CelError("double() of a hexadecimal number is not evaluated here")
        number = float(value) if DOUBLE.fullmatch(value) else None
        if number is None or (math.isinf(number) and "inf" not in value.lower()):
            raise CelError(f"invalid double: {value or 'an empty string'}")
        return number
    return float(value)


def to_bool(value: str) -> bool:
    if value not in BOOLS:
        raise CelError(f"invalid bool: {value or 'an empty string'}")
    return BOOLS[value]


def to_string(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float):
        return _shortest(value)
    if isinstance(value, bytes):
        try:
            return value.decode()
        except UnicodeDecodeError:
            raise CelError("the bytes are not valid UTF-8") from None
    text: str = at(str(value) if isinstance(value, str) else str(int(value)), path(value))
    return text


def _shortest(value: float) -> str:
    """Go's shortest text of a double: with an exponent below 1e-4 and from 1e+21 on."""
    if not math.isfinite(value):
        return "NaN" if value != value else "+Inf" if value > 0 else "-Inf"
    sign, digits, exponent = Decimal(repr(value)).normalize().as_tuple()
    point = len(digits) + int(exponent)
    text = "".join(map(str, digits))
    if value == 0:
        text = "0"
    elif -4 < point <= 6:
        text = text.ljust(point, "0") if point > 0 else text.rjust(len(text) + 1 - point, "0")
        left, right = text[: max(point, 1)], text[max(point, 1) :]
        text = left + ("." + right if right else "")
    else:
        text = text[0] + ("." + text[1:] if text[1:] else "") + f"e{point - 1:+03d}"
    return ("-" if sign else "") + text


def split(text: str, by: str, most: int = -1) -> list[str]:
    if most == 0:
        return []
    if by:
        return text.split(by, most - 1 if most > 0 else -1)
    parts = list(text)
    return parts if most < 0 or most >= len(parts) else [*parts[: most - 1], "".join(parts[most - 1 :])]


def substring(text: str, begin: int, end: int | None = None) -> str:
    last = len(text) if end is None else end
    if not 0 <= begin <= last <= len(text):
        raise CelError(f"index out of range: {begin}" + ("" if end is None else f", {end}"))
    return text[begin:last]


def character(text: str, index: int) -> str:
    if not 0 <= index <= len(text):
        raise CelError(f"index out of range: {index}")
    return text[index : index + 1]


def find(text: str, part: str, begin: int = 0) -> int:
    if not part:
        return begin
    if begin < 0:
        raise CelError(f"index out of range: {begin}")
    return text.find(part, begin)


def find_last(text: str, part: str, begin: int | None = None) -> int:
    if begin is None:
        return text.rfind(part)
    if not part:
        return begin
    if begin < 0:
        raise CelError(f"index out of range: {begin}")
    return text.rfind(part, 0, begin + len(part)) if begin < len(text) else -1
