"""Names of series: the existing ones with their sources, and those that an expression uses."""

import re
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

import yaml

from trainyard_dev.monitoring import rules

FILE = Path(__file__).parent / "series.yaml"
# Suffixes that a histogram or summary adds to its name.
_PARTS = re.compile(r"_(bucket|sum|count)$")
_STRING = re.compile(r'"(?:[^"\\]|\\.)*"')
_LABELS = re.compile(r"\b(?:by|without|on|ignoring|group_left|group_right)\s*\([^)]*\)")
_MATCHERS = re.compile(r"\{[^}]*\}")
_RANGE = re.compile(r"\[[^\]]*\]|\boffset\s+\w+")
_NAME = re.compile(r"(?<![\w:.$])([a-zA-Z_:][\w:]*)(?!\s*\()(?![\w:])")
_WORDS = {"and", "or", "unless", "bool", "inf", "nan"}


@dataclass(frozen=True)
class MetricsSource:
    """A source of metrics, and where their names are defined: files of a Go module, or of this repository."""

    by: str
    names: tuple[str, ...]
    files: str = ""
    module: str = ""
    tool: str = ""
    found_as: dict[str, str] = field(default_factory=dict)

    def ends(self, name: str) -> list[str]:
        """The parts of a name that the source may contain, longest first: all of it, or what follows a namespace."""
        if name in self.found_as:
            return [self.found_as[name]]
        words = name.split("_")
        return ["_".join(words[start:]) for start in range(len(words))]


def givers() -> list[MetricsSource]:
    """All listed sources of metrics."""
    return [
        MetricsSource(
            one["by"],
            tuple(one["names"]),
            one.get("files", ""),
            one.get("module", ""),
            one.get("tool", ""),
            one.get("as", {}),
        )
        for one in yaml.safe_load(FILE.read_text())
    ]


@cache
def known() -> set[str]:
    """Every name that may be queried: those of all sources, and of our own recording rules."""
    return {name for giver in givers() for name in giver.names} | rules.records()


def names(expr: str) -> set[str]:
    """Names of series in an expression, histograms without their suffix."""
    bare = _STRING.sub('""', expr)
    for pattern in (_MATCHERS, _RANGE, _LABELS):
        bare = pattern.sub(" ", bare)
    return {name for name in _NAME.findall(bare) if name.lower() not in _WORDS and not name.isdigit()}


def plain(name: str) -> str:
    """The name of a histogram whose bucket, sum or count this is; else the name itself."""
    short = _PARTS.sub("", name)
    return short if name not in known() and short in known() else name


def unknown(expr: str) -> set[str]:
    """The series that an expression uses but no source provides."""
    return {name for name in names(expr) if plain(name) not in known()}
