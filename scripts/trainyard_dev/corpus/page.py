"""Pages of a corpus run: results of upstream's examples, and where lint and the API server differ."""

from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path

from trainyard_dev.corpus import picked, results, started
from trainyard_dev.corpus.asking import ServerVerdict
from trainyard_dev.corpus.judge import LintVerdict, Result, typical
from trainyard_dev.corpus.sources import GROUPS

HEAD = Path(__file__).with_name("assets") / "corpus.md"
HEAD_OF_FILES = Path(__file__).with_name("assets") / "files.md"
NONE = "None."


def render() -> str:
    """The page of the last run. Raises TrainyardError when there was none."""
    of, found = results.read()
    _, filled = results.read(results.FILLED)
    return HEAD.read_text().format(
        of=of,
        verdicts="\n".join(_verdicts(found)),
        edits="\n".join(_edits(found)),
        run="\n".join(_run()),
        left_out="\n".join(_left_out()),
        filled="\n".join(_filled(filled)),
        codes="\n".join(_codes(found)),
        differences="\n".join(_differences([*found, *filled])),
    )


def files() -> str:
    """The page with every file of the last run. Raises TrainyardError when there was none."""
    _, found = results.read()
    _, filled = results.read(results.FILLED)
    text = HEAD_OF_FILES.read_text()
    return text.format(**{group.replace("-", "_"): "\n".join(_rows(group, found, filled)) for group in GROUPS})


def _rows(group: str, found: list[Result], filled: list[Result]) -> Iterator[str]:
    fills = {(one.group, one.file): one for one in filled}
    for one in (one for one in found if one.group == group):
        verdicts = " | ".join((_lint(one.lint), _server(one.server), _lint(one.lint_after), _server(one.server_after)))
        edits = f"{one.edits}, {one.by_hand} | {fills[group, one.file].edits}"
        yield f"| `{one.file}` | {verdicts} | {edits} | {results.ran(one)} |"


def _lint(one: LintVerdict) -> str:
    refuses = f"refuses: {', '.join(one.refuses)}" if one.refuses else "passes"
    return refuses + (f"; would fail: {', '.join(one.fails)}" if one.fails else "")


def _server(one: ServerVerdict) -> str:
    refuses = f"refuses: {', '.join(one.refusals)}" if one.refused else "takes"
    return refuses + (f"; lacks: {', '.join(one.lacks)}" if one.lacks else "")


def _groups(found: list[Result]) -> Iterator[tuple[str, list[Result]]]:
    for group in GROUPS:
        yield group, [one for one in found if one.group == group]
    yield "all", found


def _verdicts(found: list[Result]) -> Iterator[str]:
    for group, mine in _groups(found):
        passes = [not one.lint.refuses for one in mine], [not one.lint_after.refuses for one in mine]
        takes = [not one.server.refused for one in mine], [not one.server_after.refused for one in mine]
        fails = [one for one in mine if not one.server_after.refused and one.lint_after.fails]
        row = [len(mine), sum(passes[0]), sum(takes[0]), sum(passes[1]), sum(takes[1]), len(fails)]
        yield f"| {group} | {' | '.join(map(str, row))} |"


def _edits(found: list[Result]) -> Iterator[str]:
    for group, mine in _groups(found):
        good = [one for one in mine if one.taken]
        most = max((one.edits for one in good), default=0)
        row = [len(good), typical(good, lambda one: one.edits), most, typical(good, lambda one: one.by_hand)]
        yield f"| {group} | {' | '.join(map(str, row))} |"


def _filled(found: list[Result]) -> Iterator[str]:
    for group, mine in _groups(found):
        good = [one for one in mine if one.taken]
        as_they_are = sum(not one.server.refused for one in mine)
        most = max((one.edits for one in good), default=0)
        row = [len(mine), as_they_are, len(good), typical(good, lambda one: one.edits), most]
        yield f"| {group} | {' | '.join(map(str, row))} |"


def _run() -> Iterator[str]:
    for one in picked.PICKED:
        ranks = f"{one.world} ranks, {one.backend}" if one.trainer else "its steps"
        by_hand = "; ".join(picked.EDITS[name][0] for name in one.by_hand) or "nothing"
        yield f"| `arrivals.upstream-{one.kind}` | `{one.group}/{one.files[-1]}` | {by_hand} | {ranks} |"


def _left_out() -> Iterator[str]:
    for group, patterns, why in started.LEFT_OUT:
        yield f"| {', '.join(f'`{group}/{pattern}`' for pattern in patterns)} | {why} |"


def _codes(found: Iterable[Result]) -> Iterator[str]:
    counted = Counter(code for one in found for code in one.lint_after.refuses)
    for code, count in sorted(counted.items(), key=lambda pair: (-pair[1], pair[0])):
        yield f"| `{code}` | {count} |"


def _differences(found: Iterable[Result]) -> Iterator[str]:
    rows = [f"| `{one.group}/{one.file}` | {what} |" for one in found for what in one.differences]
    if not rows:
        yield NONE
        return
    yield "| file | |"
    yield "|---|---|"
    yield from rows
