"""Advisories: which versions of what are known to be vulnerable. Read from OSV's format and from our own short one."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from trainyard.errors import TrainyardError
from trainyard_dev.audit import ordering

OWN = Path(__file__).parent / "assets" / "advisories.yaml"


@dataclass(frozen=True)
class Part:
    """One thing that we hold: a package of an ecosystem at a version.

    `where` is the file or image that holds it; `packages` the Go packages of it that are compiled in, empty where that
    isn't known; `shipped` says whether it is part of what sites install, not of tests and tools alone.
    """

    ecosystem: str
    name: str
    version: str
    where: str
    packages: frozenset[str] = frozenset()
    shipped: bool = False


@dataclass(frozen=True)
class Span:
    """Vulnerable from `introduced` on, until before `fixed` or up to `last`; an empty end is open."""

    introduced: str = "0"
    fixed: str = ""
    last: str = ""


@dataclass(frozen=True)
class Advisory:
    """One vulnerability of one package. `imports` are the Go packages that it is in; empty: all, or unknown."""

    id: str
    ecosystem: str
    package: str
    spans: tuple[Span, ...]
    aliases: tuple[str, ...] = ()
    versions: frozenset[str] = frozenset()
    imports: frozenset[str] = frozenset()
    what: str = ""
    source: str = ""  # the database
    link: str = ""

    def concerns(self, part: Part) -> Span | None:
        """The span that a part's version lies in, None for a part that isn't vulnerable by this.

        A part whose vulnerable Go packages are not compiled in is none. What can't be compared counts as vulnerable.
        """
        if (self.ecosystem, self.package) != (part.ecosystem, part.name):
            return None
        if self.imports and part.packages and not self.imports & part.packages:
            return None
        if part.version.removeprefix("v") in self.versions:
            return next((s for s in self.spans if _inside(self.ecosystem, part.version, s)), Span())
        return next((span for span in self.spans if _inside(self.ecosystem, part.version, span)), None)

    def names(self) -> frozenset[str]:
        """All names of the vulnerability."""
        return frozenset((self.id, *self.aliases))


def _inside(ecosystem: str, version: str, span: Span) -> bool:
    key = ordering.key(ecosystem)
    try:
        have = key(version)
        if span.introduced != "0" and have < key(span.introduced):
            return False
        return not (span.fixed and have >= key(span.fixed)) and not (span.last and have > key(span.last))
    except ValueError:
        return True


def of_osv(record: Mapping[str, Any], source: str) -> Iterator[Advisory]:
    """The advisories in one record of OSV's format, one for each package; none for one that was withdrawn."""
    if record.get("withdrawn"):
        return
    for affected in record.get("affected", ()):
        package = affected.get("package", {})
        imports = affected.get("ecosystem_specific", {}).get("imports", ())
        if imports and all(one.get("goos") and "linux" not in one["goos"] for one in imports):
            continue  # on other systems only
        spans = [s for r in affected.get("ranges", ()) if r.get("type") != "GIT" for s in _spans(r["events"])]
        yield Advisory(
            id=record["id"],
            ecosystem=str(package.get("ecosystem", "")),
            package=str(package.get("name", "")),
            spans=tuple(spans),
            aliases=tuple(record.get("aliases", ())),
            versions=frozenset(affected.get("versions", ())),
            imports=frozenset(one["path"] for one in imports),
            what=str(record.get("summary") or str(record.get("details", "")).split("\n")[0]),
            source=source,
        )


def _spans(events: Iterable[Mapping[str, str]]) -> Iterator[Span]:
    start = ""
    for event in events:
        if "introduced" in event:
            if start:
                yield Span(start)
            start = event["introduced"]
        elif start and ("fixed" in event or "last_affected" in event):
            yield Span(start, event.get("fixed", ""), event.get("last_affected", ""))
            start = ""
    if start:
        yield Span(start)


def own(file: Path = OWN) -> tuple[str, list[Advisory]]:
    """The day on which our own file was last gone through, and what is in it.

    Raises:
        TrainyardError: it can't be read, or an entry lacks a key.
    """
    try:
        raw = yaml.load(file.read_text(), yaml.BaseLoader)
        found = [
            Advisory(
                id=one["id"],
                ecosystem=one["ecosystem"],
                package=one["package"],
                spans=tuple(Span(s.get("from", "0"), s.get("fixed", ""), s.get("last", "")) for s in one["affected"]),
                aliases=tuple(one.get("aliases", ())),
                what=one["what"],
                source="our own list",
                link=one["source"],
            )
            for one in raw["advisories"]
        ]
        return str(raw["gone-through"]), found
    except (OSError, yaml.YAMLError, KeyError, TypeError, AttributeError) as error:
        hint = "an entry has id, ecosystem, package, affected, what and source"
        raise TrainyardError(f"the file can't be read ({error})", where=str(file), hint=hint) from None
