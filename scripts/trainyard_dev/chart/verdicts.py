"""Verdicts on upgrades, from the entries of components: an unassessed move is blocked."""

import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from trainyard.components import registry
from trainyard.components.registry import FILE, FOLDER, RELEASES
from trainyard.errors import TrainyardError
from trainyard.paths import ROOT
from trainyard_dev.versions import installs
from trainyard_dev.versions import load as versions

WORDS = ("safe", "steps", "blocked")
LISTS = ("preconditions", "steps", "tested")  # of strings
TERM = re.compile(r"(>=|<=|=|>|<)?([0-9][0-9A-Za-z.+-]*)")


@dataclass(frozen=True)
class Verdict:
    """The verdict on moving from one range of a component's versions to another."""

    component: str
    before: str
    after: str
    verdict: str
    why: str
    preconditions: tuple[str, ...] = ()
    steps: tuple[str, ...] = ()
    tested: tuple[str, ...] = ()


@dataclass(frozen=True)
class Judgement:
    """A verdict on one component's move between two releases."""

    component: str
    before: str
    after: str
    verdict: str
    why: str
    preconditions: tuple[str, ...] = field(default=())
    steps: tuple[str, ...] = field(default=())


def key(version: str) -> tuple[int, ...]:
    """A version as numbers: `0.0.0-20260212201848-7aac2a` counts as (0, 0, 0, 20260212201848)."""
    main, _, rest = version.removeprefix("v").partition("-")
    dated = rest.partition("-")[0]
    return tuple(int(part) for part in re.findall(r"\d+", main)) + ((int(dated),) if dated.isdigit() else ())


def within(version: str, wanted: str) -> bool:
    """Whether the version is in the range: terms such as `>=1.14.1 <1.15.0`, all of which must hold, or a bare version.

    Raises:
        TrainyardError: the range is invalid.
    """
    for term in wanted.split():
        found = TERM.fullmatch(term)
        if not found:
            raise TrainyardError(f"{term!r} is not a version range", where=str(FOLDER), hint="write e.g. >=1.14.1")
        mine, other = key(version), key(found[2])
        size = max(len(mine), len(other))
        a, b = mine + (0,) * (size - len(mine)), other + (0,) * (size - len(other))
        sign = found[1] or "="
        if not {"=": a == b, ">": a > b, "<": a < b, ">=": a >= b, "<=": a <= b}[sign]:
            return False
    return True


def load(folder: Path = FOLDER) -> dict[str, list[Verdict]]:
    """Verdicts by component. Raises TrainyardError for an incomplete or contradictory entry."""
    return {one.name: [_verdict(one.name, entry) for entry in one.upgrades] for one in registry.load(folder)}


def _verdict(name: str, entry: dict[str, Any]) -> Verdict:
    problem = ""
    if entry.get("verdict") not in WORDS:
        problem = f"verdict is {entry.get('verdict')!r}, not one of {', '.join(WORDS)}"
    elif bool(entry.get("steps")) != (entry["verdict"] == "steps"):
        problem = "`steps` must be set if, and only if, the verdict is `steps`"
    elif not entry.get("why"):
        problem = "`why` is missing"
    elif wrong := [one for key in LISTS for one in entry.get(key) or () if not isinstance(one, str)]:
        problem = f"{wrong[0]} is not a string: put it in quotes"
    if problem:
        raise TrainyardError(problem, where=f"charts/{name}/{FILE}, from {entry.get('from')} to {entry.get('to')}")
    lists = {name: tuple(entry.get(name) or ()) for name in LISTS}
    return Verdict(name, str(entry["from"]), str(entry["to"]), entry["verdict"], entry["why"].strip(), **lists)


def releases(folder: Path = FOLDER) -> dict[str, dict[str, str]]:
    """Component versions by release of trainyard."""
    data = yaml.safe_load((folder / RELEASES).read_text())["releases"]
    return {str(name): {k: str(v) for k, v in held.items()} for name, held in data.items()}


def judge(component: str, before: str, after: str, known: dict[str, list[Verdict]]) -> Judgement:
    """The first verdict that covers the move; without one the move is blocked."""
    for one in known.get(component, []):
        if within(before, one.before) and within(after, one.after):
            return Judgement(component, before, after, one.verdict, one.why, one.preconditions, one.steps)
    return Judgement(component, before, after, "blocked", f"this upgrade has no verdict; see charts/{component}/{FILE}")


def assess(release: str, folder: Path = FOLDER) -> list[Judgement]:
    """A judgement for each component of this tree, for an upgrade from an installed release of trainyard."""
    known, before, after = load(folder), releases(folder).get(release), installs(ROOT, versions().raw)
    if before is None:
        why = f"release {release} has no verdict; see charts/{RELEASES}"
        return [Judgement("trainyard", release, after["trainyard"], "blocked", why)]
    moves = [judge(name, before[name], version, known) for name, version in after.items() if name in before]
    new = [name for name in after if name not in before]
    return moves + [Judgement(name, "", after[name], "safe", "new in this release") for name in new]
