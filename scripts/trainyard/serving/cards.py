"""Card of a registered version: the description next to its file, for people and servers."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from trainyard.errors import UsageError
from trainyard.terminal import printable

# A server's objects are named after its model, so the name is shorter than a registry alone would require.
NAME = re.compile(r"[a-z0-9]([a-z0-9-]{0,38}[a-z0-9])?")
VERSION = re.compile(r"[A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?")
SERVED = ("framework", "file", "inputs", "outputs")  # required by a server
ORIGIN = ("metrics", "data", "code", "run")  # not part of the content from which a version is derived
SHOWN = 12  # characters of a version in a table


@dataclass(frozen=True)
class Card:
    """One version of a model.

    Args:
        place: `bucket/prefix` of its folder.
        digest: `sha256:…` of its file; empty on old cards.
        metrics: its measured metrics.
        changed: time of registration, in seconds since 1970.
        raw: everything on the card.
    """

    name: str
    version: str
    place: str
    framework: str = ""
    file: str = ""
    digest: str = ""
    metrics: Mapping[str, float] = field(default_factory=dict)
    data: Any = None
    code: Any = None
    run: Any = None
    changed: int = 0
    raw: Mapping[str, Any] = field(default_factory=dict)

    @property
    def title(self) -> str:
        """`digits@3f2a…`, as all commands accept it; made printable, since a job may write anything to its card."""
        return printable(f"{self.name}@{self.version}")

    @property
    def lacks(self) -> tuple[str, ...]:
        """Keys that a server needs and the card lacks."""
        return tuple(key for key in SERVED if not self.raw.get(key))

    def document(self) -> dict[str, Any]:
        """The card as plain data."""
        said = {"uri": f"s3://{self.place}", "servable": not self.lacks, "metrics": dict(self.metrics)}
        return {**{key: value for key, value in self.raw.items() if key != "uri"}, **said}


def read(raw: Mapping[str, Any], place: str, changed: int = 0) -> Card:
    """The card of the version at `place`, of any age; missing keys are empty."""
    folder, _, version = place.rpartition("/")
    file, files = str(raw.get("file") or ""), raw.get("files")
    facts = files.get(file) if isinstance(files, Mapping) else None
    listed = f"sha256:{facts['sha256']}" if isinstance(facts, Mapping) and facts.get("sha256") else ""
    metrics = raw.get("metrics") if isinstance(raw.get("metrics"), Mapping) else {}
    if not metrics and is_number(raw.get("accuracy")):
        metrics = {"accuracy": raw["accuracy"]}  # format of old example pipelines
    return Card(
        name=str(raw.get("name") or folder.rpartition("/")[2]),
        version=str(raw.get("version") or version),
        place=place,
        framework=str(raw.get("framework") or ""),
        file=file,
        digest=str(raw.get("digest") or listed),
        metrics={key: float(value) for key, value in (metrics or {}).items() if is_number(value)},
        data=raw.get("data"),
        code=raw.get("code"),
        run=raw.get("run"),
        changed=changed,
        raw=raw,
    )


def told_anew(known: Card, now: Card) -> list[str]:
    """Keys of the new card that differ from the known card of the same content."""
    return [key for key in ORIGIN if getattr(now, key) and getattr(now, key) != getattr(known, key)]


def is_number(value: Any) -> bool:
    """Whether the value is a number that can be compared."""
    return isinstance(value, int | float) and not isinstance(value, bool) and value == value


def split(wanted: str) -> tuple[str, str]:
    """Name and version of `digits` or `digits@VERSION`; the version may be empty. Raises UsageError."""
    name, at, version = wanted.partition("@")
    if not NAME.fullmatch(name):
        what = f"invalid model name: {name!r}"
        raise UsageError(what, hint="use at most 40 lower-case letters, digits and hyphens: digits, or digits@VERSION")
    if at and not VERSION.fullmatch(version):
        what = f"invalid model version: {version!r}"
        raise UsageError(what, hint="use at most 63 letters, digits, dots, hyphens and underscores")
    return name, version
