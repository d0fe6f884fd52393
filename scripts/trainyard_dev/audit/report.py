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
from trainyard_dev.audit import ordering
from trainyard_dev.audit.advisories import Advisory, Part
from trainyard_dev.audit.sources import Open, once

ACCEPTED = Path(__file__).parent / "assets" / "accepted.yaml"
CLEAN, FOUND, UNASKED = 0, 1, 3
MOST_SHOWN = 2  # names and places in a line; the data has all


@dataclass(frozen=True)
class Acceptance:
    """A finding that stays until a day, with the reason."""

    id: str
    package: str
    until: datetime.date
    why: str
    where: str = ""

    def covers(self, advisory: Advisory, part: Part, today: datetime.date) -> bool:
        """Whether it accepts today that a part is vulnerable."""
        named = self.id in advisory.names() and self.package == part.name
        return named and part.where.startswith(self.where) and today < self.until


@dataclass(frozen=True)
class Finding:
    """A vulnerable version of a package, in one place or several."""

    ecosystem: str
    name: str
    version: str
    advisory: Advisory
    fixed: str  # the first version without it, empty where there is none
    places: tuple[str, ...]
    shipped: bool = False

    def data(self) -> dict[str, Any]:
        """For the file of results."""
        about = {"what": self.advisory.what, "source": self.advisory.source, "link": self.advisory.link}
        return {"package": self.name, "ecosystem": self.ecosystem, "version": self.version, "id": self.advisory.id,
                "aliases": list(self.advisory.aliases), "fixed": self.fixed, "places": list(self.places),
                "shipped": self.shipped, **about}  # fmt: skip


@dataclass
class Report:
    """Everything that an audit found."""

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
        for title, shipped in (("shipped", True), ("test cluster, tools and development only", False)):
            if mine := [one for one in self.findings if one.shipped == shipped]:
                yield ""
                yield f"{title}:"
                yield from _table(mine)
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
    found: dict[tuple[str, str, str, str], tuple[Advisory, str, list[Part]]] = {}
    for part in parts:
        for one in by_package.get((part.ecosystem, part.name), ()):
            if span := one.concerns(part):
                key = (part.ecosystem, part.name, part.version, one.id)
                found.setdefault(key, (one, span.fixed, []))[2].append(part)
    findings: list[Finding] = []
    kept: list[tuple[Finding, Acceptance]] = []
    for key in sorted(found):
        advisory, fixed, holders = found[key]
        by: dict[Acceptance | None, list[Part]] = defaultdict(list)
        for part in holders:
            by[next((one for one in accepted if one.covers(advisory, part, today)), None)].append(part)
        for acceptance, mine in by.items():
            places = tuple(sorted({part.where for part in mine}))
            one = Finding(*key[:3], advisory, fixed, places, any(part.shipped for part in mine))
            if acceptance is None:
                findings.append(one)
            else:
                kept.append((one, acceptance))
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
    """A line for each version of a package; the file of results has each vulnerability by itself."""
    grouped: dict[tuple[str, str], list[Finding]] = defaultdict(list)
    for one in findings:
        grouped[one.name, one.version].append(one)
    rows = [("package", "version", "known", "as", "fixed in", "where", "source")]
    for (name, version), mine in grouped.items():
        places = sorted({place for one in mine for place in one.places})
        sources = ", ".join(sorted({one.advisory.source for one in mine}))
        names = [_shown(one.advisory) for one in mine]
        rows.append((name, version, str(len(mine)), _few(names), _fixed(mine), _few(places), sources))
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    for row in rows:
        yield "  " + "  ".join(text.ljust(width) for text, width in zip(row, widths, strict=True)).rstrip()


def _fixed(findings: Sequence[Finding]) -> str:
    """The first version without any of these, and how many have no fix."""
    fixed = [one.fixed for one in findings if one.fixed]
    left = len(findings) - len(fixed)
    try:
        shown = max(fixed, key=ordering.key(findings[0].ecosystem), default="")
    except ValueError:  # a database names something that is no version
        shown = " / ".join(sorted(set(fixed)))
    return ", ".join([*([shown] if shown else []), *([f"{left} without fix"] if left else [])])


def _shown(advisory: Advisory) -> str:
    """The CVE's number where it has one."""
    return next((name for name in sorted(advisory.names()) if name.startswith("CVE-")), advisory.id)


def _few(words: Sequence[str]) -> str:
    more = len(words) - MOST_SHOWN
    return ", ".join(words[:MOST_SHOWN]) + (f" and {more} more" if more > 0 else "")


def _number(count: int, word: str) -> str:
    return f"{count} {word}{'' if count == 1 else 's'}"
