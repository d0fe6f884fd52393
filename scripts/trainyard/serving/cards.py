"""What is known of a registered version: the card beside its file, as people and servers read it."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from trainyard.errors import UsageError
from trainyard.terminal import printable

# A server's objects are called after its model, so the name is shorter than a registry alone would want.
NAME = re.compile(r"[a-z0-9]([a-z0-9-]{0,38}[a-z0-9])?")
VERSION = re.compile(r"[A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?")
SERVED = ("framework", "file", "inputs", "outputs")  # without these nothing can answer for it
ORIGIN = ("metrics", "data", "code", "run")  # what is no part of the content that a version is made of
SHOWN = 12  # characters of a version in a table


@dataclass(frozen=True)
class Card:
    """One version of a model.

    Args:
        place: `bucket/prefix` of its folder.
        digest: `sha256:…` of its file; empty on cards of old.
        metrics: numbers that it was measured by.
        changed: when it was registered, in seconds since 1970.
        raw: all that the card says.
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
        """`digits@3f2a…`, as every command takes it; a job may have written anything into its card."""
        return printable(f"{self.name}@{self.version}")

    @property
    def lacks(self) -> tuple[str, ...]:
        """What a server would need and the card doesn't say."""
        return tuple(key for key in SERVED if not self.raw.get(key))

    def document(self) -> dict[str, Any]:
        """As plain data."""
        said = {"uri": f"s3://{self.place}", "servable": not self.lacks, "metrics": dict(self.metrics)}
        return {**{key: value for key, value in self.raw.items() if key != "uri"}, **said}


def read(raw: Mapping[str, Any], place: str, changed: int = 0) -> Card:
    """The card of a version that lies at `place`, of any age; what it doesn't say stays empty."""
    folder, _, version = place.rpartition("/")
    file, files = str(raw.get("file") or ""), raw.get("files")
    facts = files.get(file) if isinstance(files, Mapping) else None
    listed = f"sha256:{facts['sha256']}" if isinstance(facts, Mapping) and facts.get("sha256") else ""
    metrics = raw.get("metrics") if isinstance(raw.get("metrics"), Mapping) else {}
    if not metrics and is_number(raw.get("accuracy")):
        metrics = {"accuracy": raw["accuracy"]}  # as the example pipelines of old wrote it
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
    """What the card of now says otherwise than the known one of the same content."""
    return [key for key in ORIGIN if getattr(now, key) and getattr(now, key) != getattr(known, key)]


def is_number(value: Any) -> bool:
    """Whether it is a number that can be compared."""
    return isinstance(value, int | float) and not isinstance(value, bool) and value == value


def split(wanted: str) -> tuple[str, str]:
    """`digits` or `digits@VERSION` as name and version, which may be empty. Raises UsageError."""
    name, at, version = wanted.partition("@")
    if not NAME.fullmatch(name):
        what = f"invalid model name: {name!r}"
        raise UsageError(what, hint="use at most 40 lower-case letters, digits and hyphens: digits, or digits@VERSION")
    if at and not VERSION.fullmatch(version):
        what = f"invalid model version: {version!r}"
        raise UsageError(what, hint="use at most 63 letters, digits, dots, hyphens and underscores")
    return name, version
