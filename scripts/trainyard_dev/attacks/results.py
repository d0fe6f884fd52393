"""What `make attacks` found: a file of results, one entry for each attempt, and what is not as it should be."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field

from trainyard.errors import TrainyardError
from trainyard.paths import OUT
from trainyard_dev import recorded
from trainyard_dev.attacks.guards import REFUSED, Verdict

FILE = OUT / "attacks" / "results.json"


@dataclass(frozen=True)
class Outcome:
    """An attempt with its verdict, and every guard that refuses it.

    Args:
        guard: who has to refuse; "" for whoever does.
        says: words of the refusal that are due.
    """

    id: str
    who: str
    tried: str
    guard: str
    says: str
    verdict: Verdict
    refusers: list[str] = field(default_factory=list)

    @property
    def alone(self) -> str:
        """The only guard that refuses it; "" where there are several, or none."""
        return self.refusers[0] if len(self.refusers) == 1 and self.verdict.outcome == REFUSED else ""


@dataclass(frozen=True)
class Report:
    """A whole run: day, version and commit of the tree, the API server's version, the guards, and all outcomes."""

    day: str
    version: str
    commit: str
    kubernetes: str
    guards: list[str]
    outcomes: list[Outcome]


def problems(report: Report) -> list[str]:
    """What is not as it should be, as sentences: attempts that are let through, and guards that nothing shows."""
    found = []
    for one in report.outcomes:
        if one.verdict.outcome != REFUSED:
            found.append(f"{one.id} is {one.verdict.outcome}: {one.verdict.words or one.tried}")
        elif one.guard and one.verdict.guard != one.guard:
            found.append(f"{one.id} is refused by {one.verdict.guard}, not by {one.guard}: {one.verdict.words}")
        elif one.says not in one.verdict.words:
            found.append(f"{one.id} is refused in other words: {one.verdict.words}")
    alone = {one.alone for one in report.outcomes}
    return found + [f"no attempt is refused by {guard} alone" for guard in report.guards if guard not in alone]


def write(report: Report) -> None:
    """Writes the file whole."""
    recorded.write(FILE, json.dumps(asdict(report), indent=1, ensure_ascii=False) + "\n")


def read() -> Report:
    """The last run's. Raises TrainyardError when there is none, or its file can't be read."""
    try:
        raw = json.loads(FILE.read_text())
        outcomes = [Outcome(**{**one, "verdict": Verdict(**one["verdict"])}) for one in raw["outcomes"]]
        return Report(**{**raw, "outcomes": outcomes})
    except (OSError, ValueError, TypeError, KeyError) as error:
        raise TrainyardError(f"there are no results of attacks: {error}", hint="run `make attacks`") from None
