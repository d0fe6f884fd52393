"""Results of `make attacks`: an outcome for each attempt, the problems, and the page of both."""

import json
import re
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

from trainyard.errors import TrainyardError
from trainyard_dev import recorded
from trainyard_dev.attacks.attempts import ANY
from trainyard_dev.attacks.guards import REFUSED, Verdict

FILE = "attacks/results.json"  # in the folder of results
COMMAND = "make attacks"
HEAD = """\
# Attacks

Each attempt is a request to a real API server with the platform, all of its options, and two teams on it.
Written by `make publish` from the last `make attacks`: commit {commit}, Kubernetes {kubernetes}.
"""


@dataclass(frozen=True)
class Outcome:
    """An attempt with its verdict."""

    id: str
    who: str
    tried: str
    guard: str
    says: str
    now: Verdict


@dataclass(frozen=True)
class Report:
    """A whole run. `guards` are all that have to refuse something; `seconds` is the duration."""

    commit: str
    kubernetes: str
    seconds: int
    guards: list[str]
    outcomes: list[Outcome]


def problems(report: Report) -> list[str]:
    """The problems, as sentences: attempts that were let through, and guards without an attempt."""
    found = []
    for one in report.outcomes:
        if one.now.outcome != REFUSED:
            found.append(f"{one.id} is {one.now.outcome}: {one.now.words or one.tried}")
        elif one.guard not in (ANY, one.now.guard):
            found.append(f"{one.id} is refused by {one.now.guard}, not by {one.guard}: {one.now.words}")
        elif one.says not in one.now.words:
            found.append(f"{one.id} is refused with another message: {one.now.words}")
    named = {one.guard for one in report.outcomes}
    return found + [f"no attempt tests {guard}" for guard in report.guards if guard not in named]


def counts(report: Report) -> str:
    """The run in one sentence."""
    through = sum(one.now.outcome != REFUSED for one in report.outcomes)
    return (
        f"{len(report.outcomes)} attempts on {len(report.guards)} guards in {report.seconds} s, {through} let through"
    )


def page(report: Report) -> str:
    """The run as a page, by guard."""
    lines = [HEAD.format(**asdict(report)), counts(report) + "."]
    for guard in dict.fromkeys(one.guard for one in report.outcomes):
        lines += ["", f"## {guard}", "", "| attempt | by | outcome |", "|---|---|---|"]
        lines += _rows(one for one in report.outcomes if one.guard == guard)
    return "\n".join(lines) + "\n"


def _rows(outcomes: Iterator[Outcome]) -> Iterator[str]:
    for one in outcomes:
        became = one.now.words if one.now.outcome == REFUSED else f"**{one.now.outcome}** {one.now.words}"
        cells = (re.sub(r"([|<>*_\[\]])", r"\\\1", cell) for cell in (one.tried, one.who, became))
        yield f"| `{one.id}`: {' | '.join(cells)} |"


def write(out: Path, report: Report) -> Path:
    """Writes the file of results whole."""
    recorded.write(out / FILE, json.dumps(asdict(report), indent=1, ensure_ascii=False) + "\n")
    return out / FILE


def read(out: Path) -> Report:
    """Reads the last run's report. Raises TrainyardError when the file is missing or can't be read."""
    path = out / FILE
    try:
        raw = json.loads(path.read_text())
        outcomes = [Outcome(**{**one, "now": Verdict(**one["now"])}) for one in raw["outcomes"]]
        return Report(**{**raw, "outcomes": outcomes})
    except (OSError, ValueError, TypeError, KeyError) as error:
        raise TrainyardError(f"the file can't be read ({error})", where=str(path), hint=f"run `{COMMAND}`") from None
