"""Kubernetes' quantities: `2`, `500m`, `16Gi`."""

from __future__ import annotations

import re
from decimal import ROUND_UP, Decimal, InvalidOperation, localcontext
from typing import Any

from trainyard.policy.cel.values import CelError, Quantity, whole

TEXT = re.compile(r"([+-]?[0-9.]+)(?:([KMGTPE])i|([kMGTPEmun]?)|[eE]([+-]?[0-9]+))")
SUFFIXES = {"": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18, "m": -3, "u": -6, "n": -9}
SMALLEST = Decimal("1e-9")
DIGITS = 100


def amount(text: Any) -> Decimal:
    """The number that a quantity says; what is finer than a billionth is rounded away from zero. Raises CelError."""
    match = TEXT.fullmatch(str(text))
    with localcontext() as context:
        context.prec = DIGITS
        try:
            if not match:
                raise InvalidOperation
            number = Decimal(match[1])
            if match[2]:
                number *= 1024 ** ("KMGTPE".index(match[2]) + 1)
            else:
                number *= Decimal(10) ** (int(match[4]) if match[4] else SUFFIXES[match[3]])
            return number if number == number.to_integral() else number.quantize(SMALLEST, ROUND_UP)
        except ArithmeticError:
            raise CelError(f"{text} is no quantity") from None


def is_amount(text: str) -> bool:
    """Whether `text` is a quantity."""
    try:
        amount(text)
    except CelError:
        return False
    return True


def is_whole(one: Quantity) -> bool:
    """Whether the quantity is a whole number of 64 bits."""
    try:
        as_int(one)
    except CelError:
        return False
    return True


def as_int(one: Quantity) -> int:
    """The quantity as a whole number. Raises CelError where it is none."""
    if one.number != one.number.to_integral():
        raise CelError(f"{one.number} is no whole number")
    return whole(int(one.number))
