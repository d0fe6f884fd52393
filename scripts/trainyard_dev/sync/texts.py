"""Writers of what is plain text: versions in prose and examples, and in Python's own files.

What is said of one version (a bug of Volcano 1.14.1, a past release) is no copy and isn't listed.
"""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass
from typing import Any

from packaging.utils import canonicalize_name

from trainyard_dev.sync.tree import Tree

PIN = re.compile(r"^([A-Za-z0-9][A-Za-z0-9._-]*)(\[[^\]]*\])?==([^\s;\\]+)")
_PROJECT_VERSION = re.compile(r'^(version = ")([^"]+)(")$', re.M)
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
    # Keys by which Argo CD and Flux name a chart's version or a tag of the repository.
    Copy(
        ("manifests/gitops/**/*.yaml",),
        re.compile(
            rf"^[ \t]*(?:-[ \t]+)?(?:targetRevision|version|tag|semver):[ \t]*[\"']?v?{_NUMBER}[\"']?[ \t]*(?:#.*)?$",
            re.M,
        ),
        "trainyard",
    ),
)


def prose(tree: Tree, raw: dict[str, Any]) -> None:
    """Versions that READMEs, pages, examples and modules repeat."""
    for copy in COPIES:
        wanted = str(raw["trainyard"] if copy.pin == "trainyard" else raw["components"].get(copy.pin, ""))
        for file in sorted({path for pattern in copy.files for path in tree.root.glob(pattern)}):
            name = file.relative_to(tree.root).as_posix()
            tree.write(name, _written(tree.read(name), copy.pattern, wanted), f"{copy.pin} {wanted}")


def _written(text: str, pattern: re.Pattern[str], wanted: str) -> str:
    def replaced(match: re.Match[str]) -> str:
        start = match.start(1) - match.start()
        return match[0][:start] + wanted + match[0][start + len(match[1]) :]

    return pattern.sub(replaced, text)


def python(tree: Tree, raw: dict[str, Any]) -> None:
    """Our version in pyproject.toml; what it pins, in requirements.lock."""
    text = tree.read("pyproject.toml")
    version = raw["trainyard"]
    tree.write("pyproject.toml", _PROJECT_VERSION.sub(rf"\g<1>{version}\g<3>", text, count=1), f"version {version}")
    project = tomllib.loads(text)["project"]
    wishes = [
        *project["dependencies"],
        *(w for extra in project.get("optional-dependencies", {}).values() for w in extra),
    ]
    pins = {canonicalize_name(match[1]): match[3] for wish in wishes if (match := PIN.match(wish))}
    lines = []
    for line in tree.read("requirements.lock").splitlines():
        match = PIN.match(line)
        wanted = pins.get(canonicalize_name(match[1])) if match else None
        if match and wanted and wanted != match[3]:
            tree.note("requirements.lock", f"{match[1]} {wanted}")
            line = f"{match[1]}{match[2] or ''}=={wanted}{line[match.end() :]}"
        lines.append(line)
    tree.write("requirements.lock", "\n".join(lines) + "\n")
