"""Writes docs/attacks.md and the table of the terminal out of the results of `make attacks`."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from trainyard_dev.attacks import results
from trainyard_dev.attacks.guards import ADMITTED, GUARDS, REFUSED, Verdict
from trainyard_dev.attacks.results import Outcome, Report

PAGE = "docs/attacks.md"
WORDS = 160  # letters of a refusal that the page shows
NARROW = 100
HEAD = """\
# Attacks

What was tried against {before} and is tried against this version: each attempt a real request, put to a real API server
with the release's own objects on it, two teams and one node. Written by `make attacks` out of
`docs/attacks/results.json`; `make verify` reports a page that is out of date. What the findings are and what holds
besides admission: [threat model](security.md). The rules: [policies](policies.md). Findings without a section here
are no requests to the API server: the threat model names the checks that try them.

Last run: {day}, API server of Kubernetes {kubernetes}; {before} is commit {before_commit}, this version {now}
(commit {now_commit}).
"""


def render(report: Report) -> str:
    """The whole page as text."""
    tried = report.outcomes
    head = HEAD.format(before=report.before.version, before_commit=report.before.commit[:12], day=report.day,
                       kubernetes=report.kubernetes, now=report.now.version, now_commit=report.now.commit)  # fmt: skip
    lines = [head, *_counts(report), "", "## Guards", "", *_guards(report)]
    for finding in report.findings:
        of = [one for one in tried if one.finding == finding]
        lines += ["", f"## {finding}", "", f"Would have won: {of[0].wins if of else '–'}.", "", *_table(report, of)]
    stood = [one for one in tried if not one.finding and one.before.outcome == REFUSED]
    rest = [one for one in tried if not one.finding and one.before.outcome != REFUSED]
    if rest:
        lines += ["", "## Further holes of the same rules", "", *_table(report, rest, wins=True)]
    lines += ["", f"## Borders that stood in {report.before.version}", "", *_table(report, stood, wins=True)]
    return re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).rstrip() + "\n"


def page(root: Path) -> str:
    """The page of a tree. Raises TrainyardError when its results can't be read."""
    return render(results.read(root))


def terminal(report: Report) -> Iterator[str]:
    """A line for each attempt, then the counts and what is not as it should be."""
    wide = max(len(one.id) for one in report.outcomes)
    for one in sorted(report.outcomes, key=lambda one: (one.finding, one.id)):
        then, now = (_by(verdict)[:24] for verdict in (one.before, one.now))
        yield f"{one.finding or '–':4} {one.id:{wide}}  {then:26}{now:26}{one.now.words[:NARROW]}"
    yield ""
    for guard in report.guards:
        alone = [one.id for one in report.outcomes if one.alone == guard]
        yield f"{guard:28}refuses {len(alone)} alone{', such as ' + alone[0] if alone else ''}"
    yield ""
    yield from _counts(report)
    yield from results.problems(report)


def _counts(report: Report) -> Iterator[str]:
    tried = report.outcomes
    then = sum(one.before.outcome == ADMITTED for one in tried)
    now = sum(one.now.outcome != REFUSED for one in tried)
    yield (f"{len(tried)} attempts: {report.before.version} let {then} through, this version {now}. "
           f"{sum(one.shut for one in tried)} that succeeded there are refused here.")  # fmt: skip


def _guards(report: Report) -> Iterator[str]:
    yield "*alone* counts attempts that no other guard would refuse: put again where each of them only warns."
    yield ""
    yield "| guard | refuses | alone | such as |"
    yield "|---|---|---|---|"
    for guard in report.guards:
        of = [one for one in report.outcomes if guard in one.refusers]
        alone = [one for one in of if one.alone == guard]
        such = f"`{alone[0].id}`: {_text(alone[0].tried)}" if alone else "–"
        yield f"| {_name(guard)} | {len(of)} | {len(alone)} | {such} |"


def _table(report: Report, outcomes: list[Outcome], wins: bool = False) -> Iterator[str]:
    yield f"| attempt | who |{' would win |' if wins else ''} at {report.before.version} | now |"
    yield f"|---|---|{'---|' if wins else ''}---|---|"
    for one in outcomes:
        more = f" {_text(one.wins)} |" if wins else ""
        now = _by(one.now) + (f": {_text(one.now.words)}" if one.now.words else "")
        yield f"| `{one.id}`: {_text(one.tried)} | {one.who} |{more} {_by(one.before)} | {now} |"


def _by(verdict: Verdict) -> str:
    """Outcome and guard in one word or two."""
    if verdict.outcome == REFUSED:
        return _name(verdict.guard)
    return f"**{verdict.outcome}**"


def _name(guard: str) -> str:
    return guard if guard in GUARDS else f"`{guard}`"


def _text(words: str) -> str:
    """Words inside a table's cell."""
    short = words if len(words) <= WORDS else words[: WORDS - 1].rstrip() + "…"
    return re.sub(r"([|<>*_\[\]])", r"\\\1", short)
