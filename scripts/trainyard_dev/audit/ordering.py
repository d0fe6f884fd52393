"""Which of two versions is older, as PyPI, Go and Debian each say it."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable
from typing import Any

from packaging.version import InvalidVersion, Version

Key = Callable[[str], Any]
_SEMVER = re.compile(r"v?(\d+)(?:\.(\d+))?(?:\.(\d+))?(?:-([0-9A-Za-z.-]+))?(?:\+.*)?")
_LAST = 1  # a release comes after its candidates


def key(ecosystem: str) -> Key:
    """What versions of an ecosystem (`PyPI`, `Go`, `Debian:…`) are sorted by.

    Raises (when called): ValueError for what is no version there.
    """
    if ecosystem == "PyPI":
        return _python
    return debian if ecosystem.startswith("Debian") else semver


def semver(version: str) -> tuple[Any, ...]:
    """Go's order: v1.2.3-rc.1 is older than v1.2.3, a pseudo-version older than the release that it precedes."""
    match = _SEMVER.fullmatch(version.removeprefix("go"))
    if not match:
        raise ValueError(f"{version} is no semantic version")
    core = tuple(int(part or 0) for part in match.groups()[:3])
    # Numbers come before words; an empty list of marks is the release itself.
    marks = tuple((0, int(m), "") if m.isdigit() else (1, 0, m) for m in (match[4] or "").split(".") if m)
    return (*core, (0, marks) if marks else (_LAST, ()))


def _python(version: str) -> Version:
    try:
        return Version(version)
    except InvalidVersion:
        raise ValueError(f"{version} is no version of a Python package") from None


@functools.total_ordering
class _Debian:
    """`epoch:upstream-revision`, compared as dpkg does: runs of letters and of digits by turns, `~` before the end."""

    def __init__(self, version: str) -> None:
        epoch, colon, rest = version.partition(":")
        if not colon:
            epoch, rest = "0", version
        upstream, dash, revision = rest.rpartition("-")
        if not epoch.isdigit() or not rest:
            raise ValueError(f"{version} is no version of a Debian package")
        upstream, revision = (upstream, revision) if dash else (rest, "0")
        self._parts = (int(epoch), _runs(upstream), _runs(revision))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Debian) and self._parts == other._parts

    def __lt__(self, other: _Debian) -> bool:
        return self._parts < other._parts

    def __hash__(self) -> int:
        return hash(self._parts)


def debian(version: str) -> _Debian:
    """dpkg's order."""
    return _Debian(version)


def _runs(text: str) -> tuple[Any, ...]:
    """Letters and numbers by turns; a shorter text is compared as if it went on with an end that only `~` precedes."""
    found: list[Any] = []
    for letters, digits in re.findall(r"(\D*)(\d*)", text):
        if letters or digits:
            found += [(*map(_rank, letters), 0), int(digits or 0)]
    return (*found, (0,), 0)


def _rank(sign: str) -> int:
    if sign == "~":
        return -1
    return ord(sign) if sign.isalpha() else ord(sign) + 256
