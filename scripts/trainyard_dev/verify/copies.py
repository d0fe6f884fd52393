"""Versions that prose, examples and data repeat: where they stand and what they must be.

`trainyard verify` compares them, `trainyard versions sync` writes them. What is said of one version (a bug of
Volcano 1.14.1, a past release) is no copy and isn't listed.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from trainyard_dev.versions import UMBRELLA, installs

# (file, what is wrong, what to change)
Finding = tuple[str, str, str]

RELEASES = "components/releases.yaml"
_NUMBER = r"(\d+\.\d+\.\d+)"


@dataclass(frozen=True)
class Copy:
    """A version in text: the files that may repeat it, a pattern whose only group is the version, and its pin."""

    files: tuple[str, ...]
    pattern: re.Pattern[str]
    pin: str


PROSE = ("README.md", "CONTRIBUTING.md", "docs/**/*.md", "manifests/gitops/**/*.yaml")
COPIES = (
    Copy(
        ("scripts/trainyard/__init__.py", "images/trainer/mnist/__init__.py"),
        re.compile(rf'^__version__ = "{_NUMBER}"$', re.M),
        "trainyard",
    ),
    Copy(PROSE, re.compile(rf"\btrainyard-{_NUMBER}\.tgz\b"), "trainyard"),
    Copy(PROSE, re.compile(rf"(?<!docker\.io/)\btrainyard/[a-z-]+:{_NUMBER}(?![\w.-]*\w)"), "trainyard"),
    Copy(("scripts/trainyard/policy/lint/assets/lint.md",), re.compile(rf"\brev: v{_NUMBER}$", re.M), "trainyard"),
    Copy(("docs/queues.md",), re.compile(rf"\bThe scheduler is Volcano {_NUMBER}\b"), "volcano"),
)
# Keys by which Argo CD and Flux name a chart's version or a tag of the repository; `generated` compares them.
GITOPS = Copy(
    ("manifests/gitops/**/*.yaml",),
    re.compile(
        rf"^[ \t]*(?:-[ \t]+)?(?:targetRevision|version|tag|semver):[ \t]*[\"']?v?{_NUMBER}[\"']?[ \t]*(?:#.*)?$", re.M
    ),
    "trainyard",
)


def pinned(raw: dict[str, Any], pin: str) -> str:
    """The version that a copy must have."""
    return str(raw["trainyard"] if pin == "trainyard" else raw["components"].get(pin, ""))


def places(root: Path, copies: tuple[Copy, ...] = COPIES) -> Iterator[tuple[str, Copy]]:
    """Every file of the tree that may repeat a version, with what it may repeat."""
    for copy in copies:
        for pattern in copy.files:
            for file in sorted(root.glob(pattern)):
                yield file.relative_to(root).as_posix(), copy


def differences(root: Path, raw: dict[str, Any]) -> Iterator[Finding]:
    """Every copy with another version than its pin, and the entry of this release in `components/`."""
    for file, copy in places(root):
        text, wanted = (root / file).read_text(), pinned(raw, copy.pin)
        for match in copy.pattern.finditer(text):
            if match[1] != wanted:
                number = text.count("\n", 0, match.start(1)) + 1
                yield f"{file}:{number}", f"the version of {copy.pin} is {match[1]}", f"write {wanted}"
    if not has_releases(root):
        return
    held = (yaml.safe_load((root / RELEASES).read_text())["releases"] or {}).get(raw["trainyard"])
    if held is None:
        yield RELEASES, f"the release {raw['trainyard']} isn't there", "run `bin/trainyard versions sync`"
        return
    for name, version in installs(root, raw).items():
        if str(held.get(name, "absent")) != version:
            what = f"{name} of release {raw['trainyard']} is {held.get(name, 'absent')}"
            yield RELEASES, what, f"write {version}"


def has_releases(root: Path) -> bool:
    """Whether the tree is one that says what its releases install."""
    return (root / RELEASES).exists() and (root / UMBRELLA).exists()


def written(text: str, copy: Copy, raw: dict[str, Any]) -> str:
    """The text with the pinned version in every copy of this sort."""
    wanted = pinned(raw, copy.pin)
    start = lambda match: match.start(1) - match.start()  # noqa: E731
    return copy.pattern.sub(
        lambda match: match[0][: start(match)] + wanted + match[0][start(match) + len(match[1]) :], text
    )
