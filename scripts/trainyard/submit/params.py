"""`--param NAME=VALUE`, before anything is known of types."""

from __future__ import annotations

from collections.abc import Sequence

from trainyard.errors import UsageError


def split(given: Sequence[str]) -> dict[str, str]:
    """Names to texts. Raises UsageError for one without `=`, without a name, or given twice."""
    found: dict[str, str] = {}
    for one in given:
        name, equals, value = one.partition("=")
        name = name.strip()
        if not equals or not name:
            raise UsageError(f"--param {one!r} is not NAME=VALUE", mend="write for example --param epochs=3")
        if name in found:
            raise UsageError(f"--param {name} is given twice")
        found[name] = value
    return found
