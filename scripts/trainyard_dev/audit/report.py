"""The result of an audit: findings, what is accepted, what could not be asked; as a table and as data."""

from __future__ import annotations

import datetime
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from trainyard.errors import TrainyardError
from trainyard_dev.audit.advisories import Advisory, Part
from trainyard_dev.audit.sources import Open, once

ACCEPTED = Path(__file__).parent / "assets" / "accepted.yaml"
CLEAN, FOUND, UNASKED = 0, 1, 3
MOST_PLACES = 3  # named in a line; the data has all


@dataclass(frozen=True)
class Acceptance:
    """A finding that stays until a day, with the reason."""

    id: str
    package: str
    until: datetime.date
    why: str
    where: str = ""

    def covers(self, finding: Finding, place: str, today: datetime.date) -> bool:
        """Whether it accepts the finding in one place today."""
        named = self.id in finding.advisory.names() and self.package == finding.name
        return named and place.startswith(self.where) and today < self.until


@dataclass(frozen=True)
class Finding:
    """A vulnerable version of a package, in one place or several."""

    ecosystem: str
    name: str
    version: str
    advisory: Advisory
    fixed: str  # the first version without it, empty where there is none
    places: tuple[str, ...]

    def data(self) -> dict[str, Any]:
        """For the file of results."""
        return {"package": self.name, "ecosystem": self.ecosystem, "version": self.version, "id": self.advisory.id,
                "aliases": list(self.advisory.aliases), "fixed": self.fixed, "places": list(self.places),
                "what": self.advisory.what, "source": self.advisory.source, "link": self.advisory.link}  # fmt: skip


@dataclass
class Report:
    """Everything that an audit tells."""

    findings: list[Finding] = field(default_factory=list)
    accepted: list[tuple[Finding, Acceptance]] = field(default_factory=list)
    open: list[Open] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    @property
    def code(self) -> int:
        """0: nothing found and everything asked, 1: something found, 3: nothing found, but not everything asked."""
        return FOUND if self.findings else UNASKED if self.open else CLEAN

    def data(self) -> dict[str, Any]:
        """For the file of results."""
        return {
            "code": self.code,
            "findings": [one.data() for one in self.findings],
            "accepted": [{**one.data(), "until": by.until.isoformat(), "why": by.why} for one, by in self.accepted],
            "open": [{"what": one.what, "why": one.why} for one in self.open],
            "notes": self.notes,
        }

    def lines(self) -> Iterator[str]:
        """As a person reads it."""
        yield from self.notes
        if self.findings:
            yield ""
            yield from _table(self.findings)
        if self.accepted:
            yield ""
            yield "accepted:"
            for one, by in self.accepted:
                yield f"  {one.name} {one.version}  {_shown(one.advisory)}, until {by.until}: {by.why}"
        if self.open:
            yield ""
            yield "open, as it could not be asked:"
            for left in self.open:
                yield f"  {left.what}: {left.why}"
        yield ""
        yield (f"{_number(len(self.findings), 'finding')}, {len(self.accepted)} accepted, "
               f"{_number(len(self.open), 'question')} open")  # fmt: skip


def judge(
    parts: Iterable[Part], advisories: Iterable[Advisory], accepted: Sequence[Acceptance], today: datetime.date
) -> tuple[list[Finding], list[tuple[Finding, Acceptance]]]:
    """What the advisories say of the parts: findings, and those that are accepted today."""
    by_package: dict[tuple[str, str], list[Advisory]] = defaultdict(list)
    for one in once(advisories):
        by_package[one.ecosystem, one.package].append(one)
    places: dict[tuple[str, str, str, str], dict[str, None]] = defaultdict(dict)
    known: dict[tuple[str, str, str, str], tuple[Advisory, str]] = {}
    for part in parts:
        for one in by_package.get((part.ecosystem, part.name), ()):
            if span := one.concerns(part):
                key = (part.ecosystem, part.name, part.version, one.id)
                known.setdefault(key, (one, span.fixed))
                places[key][part.where] = None
    findings: list[Finding] = []
    kept: list[tuple[Finding, Acceptance]] = []
    for key, (advisory, fixed) in sorted(known.items(), key=lambda item: item[0]):
        whole = Finding(*key[:3], advisory, fixed, tuple(sorted(places[key])))
        by = {place: next((a for a in accepted if a.covers(whole, place, today)), None) for place in whole.places}
        if left := tuple(place for place, acceptance in by.items() if acceptance is None):
            findings.append(Finding(*key[:3], advisory, fixed, left))
        for acceptance in dict.fromkeys(found for found in by.values() if found):
            spots = tuple(place for place, found in by.items() if found is acceptance)
            kept.append((Finding(*key[:3], advisory, fixed, spots), acceptance))
    return findings, kept


def acceptances(file: Path = ACCEPTED) -> list[Acceptance]:
    """What is accepted, and why.

    Raises:
        TrainyardError: the file can't be read, or an entry lacks a key or a reason.
    """
    try:
        raw = yaml.load(file.read_text(), yaml.BaseLoader)
        found = [
            Acceptance(one["id"], one["package"], datetime.date.fromisoformat(one["until"]), one["why"],
                       one.get("where", ""))
            for one in raw["accepted"] or ()
        ]  # fmt: skip
        if bare := next((one for one in found if not one.why.strip()), None):
            raise ValueError(f"{bare.id} has no reason")
        return found
    except (OSError, yaml.YAMLError, KeyError, TypeError, ValueError) as error:
        hint = "an entry has id, package, until (a day) and why"
        raise TrainyardError(f"the file can't be read ({error})", where=str(file), hint=hint) from None


def _table(findings: Sequence[Finding]) -> Iterator[str]:
    head = ("package", "version", "known as", "fixed in", "where", "told by")
    rows = [head, *((one.name, one.version, _shown(one.advisory), one.fixed or "no fix", _places(one.places),
                     one.advisory.source) for one in findings)]  # fmt: skip
    widths = [max(len(row[column]) for row in rows) for column in range(len(head))]
    for row in rows:
        yield "  ".join(text.ljust(width) for text, width in zip(row, widths, strict=True)).rstrip()


def _shown(advisory: Advisory) -> str:
    """The CVE's number where it has one."""
    return next((name for name in sorted(advisory.names()) if name.startswith("CVE-")), advisory.id)


def _places(places: Sequence[str]) -> str:
    more = len(places) - MOST_PLACES
    return ", ".join(places[:MOST_PLACES]) + (f" and {more} more" if more > 0 else "")


def _number(count: int, word: str) -> str:
    return f"{count} {word}{'' if count == 1 else 's'}"
