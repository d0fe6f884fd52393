"""What `make attacks` found: a file of results, one entry for each attempt, and what is not as it should be."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from pathlib import Path

from trainyard.errors import TrainyardError
from trainyard_dev import recorded
from trainyard_dev.attacks.guards import ADMITTED, REFUSED, Verdict

FILE = "docs/attacks/results.json"


@dataclass(frozen=True)
class Version:
    """A version that was attacked."""

    version: str
    commit: str


@dataclass(frozen=True)
class Outcome:
    """An attempt with its verdicts: at the earlier release, now, and every guard that refuses it now."""

    id: str
    who: str
    tried: str
    wins: str
    finding: str
    guard: str
    says: str
    before: Verdict
    now: Verdict
    refusers: list[str] = field(default_factory=list)

    @property
    def shut(self) -> bool:
        """Whether it succeeded at the earlier release and is refused now."""
        return self.before.outcome == ADMITTED and self.now.outcome == REFUSED

    @property
    def alone(self) -> str:
        """The only guard that refuses it; "" where there are several, or none."""
        return self.refusers[0] if len(self.refusers) == 1 and self.now.outcome == REFUSED else ""


@dataclass(frozen=True)
class Report:
    """A whole run: day, versions, the API server's version, and all outcomes. `guards` are those of this tree."""

    day: str
    before: Version
    now: Version
    kubernetes: str
    findings: list[str]
    guards: list[str]
    outcomes: list[Outcome]


def problems(report: Report) -> list[str]:
    """What is not as it should be, as sentences: attempts that are let through, and what nothing shows."""
    found = []
    for one in report.outcomes:
        if one.now.outcome != REFUSED:
            found.append(f"{one.id} is {one.now.outcome} now: {one.now.words or one.tried}")
        elif one.guard and one.now.guard != one.guard:
            found.append(f"{one.id} is refused by {one.now.guard}, not by {one.guard}: {one.now.words}")
        elif one.says not in one.now.words:
            found.append(f"{one.id} is refused in other words: {one.now.words}")
    shut = {one.finding for one in report.outcomes if one.shut}
    found += [f"no attempt shows that {finding} is shut" for finding in report.findings if finding not in shut]
    alone = {one.alone for one in report.outcomes}
    return found + [f"no attempt is refused by {guard} alone" for guard in report.guards if guard not in alone]


def write(root: Path, report: Report) -> None:
    """Writes the file whole."""
    recorded.write(root / FILE, json.dumps(asdict(report), indent=1, ensure_ascii=False) + "\n")


def read(root: Path) -> Report:
    """The last run's. Raises TrainyardError when the file can't be read."""
    path = root / FILE
    try:
        raw = json.loads(path.read_text())
        outcomes = [
            Outcome(**{**one, "before": Verdict(**one["before"]), "now": Verdict(**one["now"])})
            for one in raw["outcomes"]
        ]
        versions = {"before": Version(**raw["before"]), "now": Version(**raw["now"])}
        return Report(**{**raw, **versions, "outcomes": outcomes})
    except (OSError, ValueError, TypeError, KeyError) as error:
        hint = "take it back from the repository, or run `make attacks`"
        raise TrainyardError(f"the file can't be read ({error})", where=str(path), hint=hint) from None
