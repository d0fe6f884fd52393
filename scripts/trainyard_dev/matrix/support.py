"""End of support of each pinned version: `support.yaml` and components' entries, compared with `versions.yaml`."""

import datetime
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from trainyard.components import registry
from trainyard.errors import TrainyardError
from trainyard_dev.versions import OWN_MODULES

FILE = "support.yaml"
NEVER_SAID = "open"  # in place of a day: upstream names none, and still maintains this line
OVER = "over"  # in place of a day: upstream maintains only later releases, or none any more
FAMILY = "kubernetes"
# (file, what is wrong, what to change)
Finding = tuple[str, str, str]


@dataclass(frozen=True)
class Line:
    """The support of one line of releases, such as Argo's 3.7.

    `ends` is a day, `open` or `over`; `past` the reason why a line past its end stays, empty for one that isn't.
    """

    name: str
    line: str
    ends: str
    rule: str
    source: str
    newest: str = ""
    past: str = ""

    def over(self, today: datetime.date) -> bool:
        """Whether support has ended by that day."""
        return self.ends == OVER or (self.ends != NEVER_SAID and datetime.date.fromisoformat(self.ends) <= today)

    def holds(self, version: str) -> bool:
        """Whether a version is of this line: 3.7.18 of 3.7, bookworm-20250520-slim of bookworm."""
        found = version.removeprefix("v")
        return found == self.line or found.startswith((f"{self.line}.", f"{self.line}-"))


@dataclass(frozen=True)
class Fixes:
    """The time within which a kind of fix is released."""

    kind: str
    within: str
    how: str


@dataclass(frozen=True)
class Support:
    """The whole file. `kubernetes` has every minor of the matrix, `lines` everything else that is pinned."""

    gone_through: datetime.date
    kubernetes: dict[str, Line]
    lines: dict[str, Line]
    fixes: tuple[Fixes, ...]


def read(root: Path) -> Support:
    """Parses the file.

    Raises:
        TrainyardError: it can't be read, or an entry lacks a key or has an invalid day.
    """
    path = root / FILE
    try:
        raw = yaml.load(path.read_text(), yaml.BaseLoader)
        minors = {
            minor: _line(FAMILY, {"line": minor, "rule": raw["kubernetes"]["rule"],
                                  "source": raw["kubernetes"]["source"], **entry})
            for minor, entry in raw["kubernetes"]["minors"].items()
        }  # fmt: skip
        own = {one.pin: {key: str(text) for key, text in one.support.items()} for one in registry.load(root / "charts")}
        entries = raw["lines"] | {name: entry for name, entry in own.items() if entry}
        lines = {name: _line(name, entry) for name, entry in sorted(entries.items())}
        fixes = tuple(Fixes(one["kind"], one["within"], one["how"]) for one in raw["fixes"])
        return Support(datetime.date.fromisoformat(raw["gone-through"]), minors, lines, fixes)
    except (OSError, yaml.YAMLError, KeyError, TypeError, ValueError, AttributeError) as error:
        said = f"`{error.args[0]}` is missing" if isinstance(error, KeyError) else str(error)
        hint = "an entry has line, ends (a day, open or over), rule and source"
        raise TrainyardError(f"the file can't be read ({said})", where=str(path), hint=hint) from None


def _line(name: str, entry: dict[str, str]) -> Line:
    found = Line(name, entry["line"], entry["ends"], entry["rule"], entry["source"], entry.get("newest", ""),
                 entry.get("past", ""))  # fmt: skip
    if found.ends not in (NEVER_SAID, OVER):
        datetime.date.fromisoformat(found.ends)
    return found


def pinned(raw: dict[str, Any]) -> dict[str, str]:
    """All third-party versions that `versions.yaml` pins, except images: name -> version."""
    found = {name: str(version) for name, version in raw["components"].items() if name != FAMILY}
    for name, spec in raw["tools"].items():
        further = spec.get("family", name) != name or "of" in spec or name == FAMILY
        if name not in found and not further and not spec["module"].startswith(OWN_MODULES):
            found[name] = str(spec["version"])
    bases = {"debian": "base-image", "debian-older": "older-base-image"}
    pulled = {name: raw.get("pull", {}).get(key, "").rpartition(":")[2] for name, key in bases.items()}
    return found | {name: tag for name, tag in pulled.items() if tag}


def minors(raw: dict[str, Any]) -> dict[str, str]:
    """The minors of Kubernetes whose API server can be built: minor -> version, oldest first; a later set counts."""
    found: dict[str, str] = {}
    for name, spec in raw["tools"].items():
        if spec.get("family", name) == FAMILY:
            version = str(spec["version"]).removeprefix("v")
            found[".".join(version.split(".")[:2])] = version
    return dict(sorted(found.items(), key=lambda item: [int(part) for part in item[0].split(".")]))


def differences(root: Path, raw: dict[str, Any]) -> Iterator[Finding]:
    """Pins of `versions.yaml` that the file lacks, and lines past their support without a reason.

    A line counts as over by the day of the file's last review, so that the verdict of `make verify` does not change
    with the calendar. That of `make audit` does.
    """
    if not (root / FILE).exists():
        return  # a tree that promises no support
    try:
        found = read(root)
    except TrainyardError as error:
        yield FILE, error.what, error.hint
        return
    have = pinned(raw)
    for name in sorted(have.keys() - found.lines.keys()):
        yield FILE, f"{name} {have[name]} has no entry", "add the end of its support"
    for name in sorted(found.lines.keys() - have.keys()):
        yield FILE, f"{name} has no pin", "remove it"
    for name in sorted(have.keys() & found.lines.keys()):
        if not found.lines[name].holds(have[name]):
            yield FILE, f"{name} is {have[name]}, which is not in line {found.lines[name].line}", "update line and ends"
    for minor in sorted(minors(raw).keys() - found.kubernetes.keys()):
        yield FILE, f"Kubernetes {minor} has no entry", "add the end of its support"
    for line in (*found.lines.values(), *found.kubernetes.values()):
        over, shown = line.over(found.gone_through), f"{line.name} {line.line}"
        if over and not line.past:
            yield FILE, f"{shown} is no longer supported", "upgrade it, or state the reason in `past`"
        elif line.past and not over:
            yield FILE, f"{shown} is supported", "remove `past`"
