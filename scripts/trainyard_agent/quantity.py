"""Kubernetes quantities as numbers."""

from __future__ import annotations

import math
import re

_UNITS = {
    "n": 1e-9, "u": 1e-6, "m": 1e-3, "": 1.0, "k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "P": 1e15, "E": 1e18,
    "Ki": 2.0**10, "Mi": 2.0**20, "Gi": 2.0**30, "Ti": 2.0**40, "Pi": 2.0**50, "Ei": 2.0**60,
}  # fmt: skip
_TEXT = re.compile(r"([+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)([KMGTPE]i|[numkMGTPE]?)", re.ASCII)
LONGEST = 40  # characters


def number(text: object) -> float:
    """`500m` as 0.5, `1Gi` as bytes, `1e3` as 1000. Raises ValueError for an invalid quantity."""
    match = _TEXT.fullmatch(str(text).strip())
    found = float(match[1]) * _UNITS[match[2]] if match else math.inf
    if not match or len(match[0]) > LONGEST or not math.isfinite(found):
        raise ValueError(f"invalid quantity: {str(text)[:LONGEST]}")
    return found


def numbers(amounts: object) -> dict[str, float]:
    """The amounts of a resource list as numbers, without invalid ones."""
    found = {}
    for name, text in (amounts if isinstance(amounts, dict) else {}).items():
        try:
            found[str(name)] = number(text)
        except ValueError:
            continue
    return found
