"""The page and the table of the terminal, made of the results of `make attacks`."""

from __future__ import annotations

import re
from collections.abc import Iterator

from trainyard_dev.attacks import results
from trainyard_dev.attacks.guards import GUARDS, REFUSED, Verdict
from trainyard_dev.attacks.results import Outcome, Report

WORDS = 160  # letters of a refusal that the page shows
NARROW = 100
HEAD = """\
# Attacks

Each attempt is a real request, put to a real API server with the release's own objects, two teams and one node. Last
run: {day}, `make attacks` at {version} (commit {commit}), API server of Kubernetes {kubernetes}.
"""


def render(report: Report) -> str:
    """The whole page as text."""
    lines = [HEAD.format(**vars(report)), *_counts(report), "", "## Guards", "", *_guards(report)]
    lines += ["", "## Attempts", "", "| attempt | who | refused by |", "|---|---|---|"]
    for one in report.outcomes:
        words = f": {_text(one.verdict.words)}" if one.verdict.words else ""
        lines.append(f"| `{one.id}`: {_text(one.tried)} | {one.who} | {_by(one.verdict)}{words} |")
    return re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).rstrip() + "\n"


def terminal(report: Report) -> Iterator[str]:
    """A line for each attempt, then the counts and what is not as it should be."""
    wide = max(len(one.id) for one in report.outcomes)
    for one in sorted(report.outcomes, key=lambda one: one.id):
        yield f"{one.id:{wide}}  {_by(one.verdict)[:24]:26}{one.verdict.words[:NARROW]}"
    yield ""
    for guard in report.guards:
        alone = _alone(report, guard)
        yield f"{guard:28}refuses {len(alone)} alone{', such as ' + alone[0].id if alone else ''}"
    yield ""
    yield from _counts(report)
    yield from results.problems(report)


def _counts(report: Report) -> Iterator[str]:
    through = sum(one.verdict.outcome != REFUSED for one in report.outcomes)
    yield f"{len(report.outcomes)} attempts, {through} let through."


def _guards(report: Report) -> Iterator[str]:
    yield "*alone* counts attempts that no other guard would refuse: put again where each of them only warns."
    yield ""
    yield "| guard | refuses | alone | such as |"
    yield "|---|---|---|---|"
    for guard in report.guards:
        of, alone = [one for one in report.outcomes if guard in one.refusers], _alone(report, guard)
        such = f"`{alone[0].id}`: {_text(alone[0].tried)}" if alone else "–"
        yield f"| {_name(guard)} | {len(of)} | {len(alone)} | {such} |"


def _alone(report: Report, guard: str) -> list[Outcome]:
    return [one for one in report.outcomes if one.alone == guard]


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
