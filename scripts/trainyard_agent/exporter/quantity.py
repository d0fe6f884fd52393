"""Amounts as Kubernetes writes them, as numbers."""

from __future__ import annotations

_UNITS = {
    "n": 1e-9, "u": 1e-6, "m": 1e-3, "": 1.0, "k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "P": 1e15, "E": 1e18,
    "Ki": 2.0**10, "Mi": 2.0**20, "Gi": 2.0**30, "Ti": 2.0**40, "Pi": 2.0**50, "Ei": 2.0**60,
}  # fmt: skip
LONGEST = 40  # characters


def number(text: object) -> float:
    """`500m` as 0.5, `1Gi` as bytes, `1e3` as 1000. Raises ValueError for what is none."""
    word = str(text).strip()
    digits = word.rstrip("numkMGTPEKi")
    unit = word[len(digits) :]
    if len(word) > LONGEST or unit not in _UNITS or not digits[:1].strip("_"):
        raise ValueError(f"{word[:LONGEST]!r} is no amount")
    found = float(digits) * _UNITS[unit]
    if found != found or found in (float("inf"), float("-inf")):
        raise ValueError(f"{word!r} is no amount")
    return found


def numbers(amounts: object) -> dict[str, float]:
    """Those of a resource list, without what is no amount."""
    found = {}
    for name, text in (amounts if isinstance(amounts, dict) else {}).items():
        try:
            found[str(name)] = number(text)
        except ValueError:
            continue
    return found
