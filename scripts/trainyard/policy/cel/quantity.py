"""Kubernetes' quantities: `2`, `500m`, `16Gi`."""

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from decimal import ROUND_UP, Decimal, localcontext
from typing import Any

from trainyard.policy.cel.values import KINDS, CelError, whole

TEXT = re.compile(
    r"(?P<sign>[+-]?)0*(?P<whole>[0-9]*)(?:\.(?P<part>[0-9]*))?(?P<suffix>[KMGTPE]i|[numkMGTPE]?|[eE][+-]?[0-9]+)"
)
POWERS = {"": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18, "m": -3, "u": -6, "n": -9}
DIGITS = 18  # that many digits always fit in 64 bits
BINARY_DIGITS = 14
FINEST = -9
MOST = 2**63 - 1
LARGEST_POWER = 1000
PRECISION = 3000


@dataclass(frozen=True)
class Quantity:
    """Result of `quantity()`: `number`, stored as a 64-bit integer times 10 to the power of `scale`.

    Without a scale it is stored as a big number, which Kubernetes never treats as an integer.
    """

    number: Decimal
    scale: int | None = field(compare=False)


KINDS[Quantity] = "kubernetes.Quantity"


def parse(text: Any) -> Quantity:
    """Parses a quantity; rounds fractions of a billionth away from zero. Raises CelError."""
    match = TEXT.fullmatch(str(text))
    if not match or not match[0]:
        raise CelError(f"invalid quantity: {text}")
    digits, part, suffix = match["whole"] or "0", match["part"] or "", match["suffix"]
    binary = "KMGTPE".index(suffix[0]) * 10 + 10 if suffix.endswith("i") else 0
    power = 0 if binary else POWERS[suffix] if suffix in POWERS else int(suffix[1:])
    if abs(power) > LARGEST_POWER:
        raise CelError(f"invalid quantity: {text}")
    scale = power - len(part)
    with localcontext() as context:
        context.prec = PRECISION
        number = Decimal(int(digits + part) * 2**binary).scaleb(scale)
        if match["sign"] == "-":
            number = -number
        room = BINARY_DIGITS - len(digits) - binary * 3 // 10 if binary else DIGITS - len(digits) - len(part)
        if room >= 0 and scale >= FINEST and not (binary and part):
            return Quantity(number, scale)
        if number:
            number = number.quantize(Decimal(1).scaleb(FINEST), ROUND_UP)
        return Quantity(max(min(number, Decimal(MOST)), Decimal(-MOST)) if binary else number, None)


def amount(text: Any) -> Decimal:
    """Value of a quantity. Raises CelError."""
    return parse(text).number


def number(value: Any) -> float | None:
    """A quantity such as 500m or 2Gi as cores or bytes; None if it is invalid."""
    try:
        return float(amount(value))
    except CelError:
        return None


def is_amount(text: str) -> bool:
    """Whether `text` is a quantity."""
    return _gives(parse, text)


def as_int(one: Quantity) -> int:
    """The quantity as an integer. Raises CelError if Kubernetes stores it as none, such as `1000m` and `1.0`."""
    if one.scale is None or one.scale < 0:
        raise CelError("cannot convert value to integer")
    return whole(int(one.number))


def is_whole(one: Quantity) -> bool:
    """Whether `as_int` succeeds."""
    return _gives(as_int, one)


def as_float(one: Quantity) -> float:
    """The approximate value, with the error of a product of two doubles."""
    scale = FINEST if one.scale is None else one.scale
    with localcontext() as context:
        context.prec = PRECISION
        base = float(int(one.number.scaleb(-scale)))
    return base * 10.0**scale if scale else base


def add(one: Quantity, other: Quantity | int, sign: int = 1) -> Quantity:
    """The sum, or the difference if `sign` is -1."""
    two = other if isinstance(other, Quantity) else Quantity(Decimal(int(other)), 0)
    with localcontext() as context:
        context.prec = PRECISION
        number = one.number + sign * two.number
        if one.scale is None or two.scale is None:
            return Quantity(number, None)
        scale = one.scale if not two.number else two.scale if not one.number else min(one.scale, two.scale)
        return Quantity(number, scale if abs(number.scaleb(-scale)) <= MOST else None)


def order(one: Quantity, other: Quantity) -> int:
    """-1, 0 or 1: the order of two quantities."""
    return int(one.number > other.number) - int(one.number < other.number)


def _gives(work: Callable[[Any], object], value: Any) -> bool:
    try:
        work(value)
    except CelError:
        return False
    return True
