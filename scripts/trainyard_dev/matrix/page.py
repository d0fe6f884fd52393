"""Writes docs/support.md from versions.yaml, support.yaml and the results of `make matrix`."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from trainyard_dev.matrix import results, support
from trainyard_dev.matrix.results import GROUPS, MAIN_JOB, NOT_RUN, Matrix, Result
from trainyard_dev.matrix.support import FAMILY, NEVER_SAID, OVER, Line, Support

PAGE = "docs/support.md"
HEAD = """\
# Support

After this page you can say which versions are tested together, when support of each part ends, and how fast fixes come.
`bin/trainyard versions sync` generates this page from `versions.yaml`, `support.yaml` and `docs/support/matrix.json`,
the results of `make matrix`. Ends of support are as known on {day}; `make audit` reports what has ended since.

## Kubernetes

"""
GROUPS_ARE = """\
*policies*, *charts*, *scheduling* and *pipelines* are the groups of `make test`, run with the API server of that
version and the scheduler, controllers and kubelets that we ship or pin. *main job* is `make e2e KUBERNETES=…`,
run on a whole cluster of that version."""
CEILING = """\
The chart installs on versions below {ceiling}, the first one after the newest on which *policies* passed; that group
applies the whole chart to the API server."""


def render(root: Path, raw: dict[str, Any]) -> str:
    """The whole page as text. Raises TrainyardError when a source of it can't be read."""
    known, matrix = support.read(root), results.read(root)
    lines = [HEAD.format(day=known.gone_through).rstrip("\n"), "", *_kubernetes(known, matrix, raw)]
    lines += ["", "## Parts", "", *_parts(known, raw), "", "## Unsupported versions, and why", "", *_past(known, raw)]
    lines += ["", "## Fixes", "", *_fixes(known)]
    return "\n".join(lines).rstrip() + "\n"


def _kubernetes(known: Support, matrix: Matrix, raw: dict[str, Any]) -> Iterator[str]:
    groups = (*GROUPS, MAIN_JOB)
    own = str(raw["components"][FAMILY])
    yield f"| | API server | support ends | {' | '.join(groups)} |"
    yield f"|---|---|---|{'---|' * len(groups)}"
    minors = support.minors(raw)
    for minor, line in known.kubernetes.items():
        ran = matrix.get(minor, {})
        versions = sorted({one.version for one in ran.values()}) or [minors.get(minor, "")]
        cells = [_cell(ran.get(group)) for group in groups]
        name = f"**{minor}**, the test cluster's" if own.startswith(f"{minor}.") else minor
        yield f"| {name} | {', '.join(versions) or '–'} | {_end(line, known)} | {' | '.join(cells)} |"
    yield ""
    yield GROUPS_ARE
    if ceiling := results.ceiling(matrix):
        yield CEILING.format(ceiling=ceiling)
    if runs := [one for groups_ in matrix.values() for one in groups_.values()]:
        last = max(one.day for one in runs)
        commits = sorted({one.commit for one in runs if one.day == last})
        yield f"Last run: {last}, {'commit' if len(commits) == 1 else 'commits'} {', '.join(commits)}."
    for minor, group, one in ((m, g, r) for m, of in sorted(matrix.items()) for g, r in sorted(of.items())):
        if not one.good:
            what = ", ".join(f"`{name}`" for name in one.failures) or one.why
            yield f"- {group} on {minor} {'failed' if one.result != NOT_RUN else 'did not run'}: {what}"


def _cell(one: Result | None) -> str:
    if one is None or one.result == NOT_RUN:
        return NOT_RUN
    return f"passed, {one.passed} tests" if one.good else f"**{one.failed} of {one.passed + one.failed} failed**"


def _parts(known: Support, raw: dict[str, Any]) -> Iterator[str]:
    yield "| part | version | support ends | newest known | upstream supports |"
    yield "|---|---|---|---|---|"
    for name, version in sorted(support.pinned(raw).items()):
        if line := known.lines.get(name):
            yield (f"| {name} | {_short(version)} | {_end(line, known)} | {line.newest or '–'} | "
                   f"[{line.rule}]({line.source}) |")  # fmt: skip


def _past(known: Support, raw: dict[str, Any]) -> Iterator[str]:
    have = support.pinned(raw)
    yield "| | why it is kept |"
    yield "|---|---|"
    for line in (*known.kubernetes.values(), *known.lines.values()):
        if line.past:
            yield f"| {line.name} {_short(have.get(line.name, line.line))} | {line.past} |"


def _fixes(known: Support) -> Iterator[str]:
    yield "Our targets, counted from the day on which a fix is known. Only the newest release gets fixes."
    yield ""
    yield "| what | within | how |"
    yield "|---|---|---|"
    for one in known.fixes:
        yield f"| {one.kind} | {one.within} | {one.how} |"


def _end(line: Line, known: Support) -> str:
    if line.ends == NEVER_SAID:
        return "not announced"
    shown = "over" if line.ends == OVER else line.ends
    return f"**{shown}**" if line.over(known.gone_through) else shown


def _short(version: str) -> str:
    """Shortens a pseudo-version to its date: its hash is in versions.yaml."""
    parts = version.removeprefix("v").split("-")
    return f"of {parts[1][:8]}" if len(parts) == 3 and parts[0] == "0.0.0" else version.removeprefix("v")
