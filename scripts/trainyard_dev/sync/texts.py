"""Writers of plain text: versions in prose and examples, and in Python's own files.

A statement about one version (a bug of Volcano 1.14.1, a past release) is no copy and isn't listed.
"""

import re
import tomllib
from typing import Any

from packaging.utils import canonicalize_name

from trainyard_dev.sync.tree import Tree

PIN = re.compile(r"^([A-Za-z0-9][A-Za-z0-9._-]*)(\[[^\]]*\])?==([^\s;\\]+)")
_PROJECT_VERSION = re.compile(r'^(version = ")([^"]+)(")$', re.M)
_NUMBER = r"(\d+\.\d+\.\d+)"


PROSE = ("README.md", "CONTRIBUTING.md", "docs/**/*.md", "charts/*/README.md", "manifests/gitops/**/*.yaml")
# A pin, the files that may repeat its version, and a pattern of a line in them; its only group is the version.
COPIES: tuple[tuple[str, tuple[str, ...], str], ...] = (
    (
        "trainyard",
        ("scripts/trainyard/__init__.py", "images/trainer/mnist/__init__.py"),
        rf'^__version__ = "{_NUMBER}"$',
    ),
    ("trainyard", PROSE, rf"\btrainyard-{_NUMBER}\.tgz\b"),
    ("trainyard", PROSE, rf"(?<!site\.invalid/)\btrainyard/[a-z-]+:{_NUMBER}(?![\w.-]*\w)"),
    ("trainyard", ("scripts/trainyard/policy/lint/assets/lint.md",), rf"\brev: v{_NUMBER}$"),
    ("volcano", ("docs/queues.md",), rf"\bThe scheduler is Volcano {_NUMBER}\b"),
    # Keys in which Argo CD and Flux name a chart's version or a tag of the repository.
    (
        "trainyard",
        ("manifests/gitops/**/*.yaml",),
        rf"^[ \t]*(?:-[ \t]+)?(?:targetRevision|version|tag|semver):[ \t]*[\"']?v?{_NUMBER}[\"']?[ \t]*(?:#.*)?$",
    ),
)


def prose(tree: Tree, raw: dict[str, Any]) -> None:
    """Versions that READMEs, pages, examples and modules repeat."""
    for pin, patterns, line in COPIES:
        wanted = str(raw["trainyard"] if pin == "trainyard" else raw["components"].get(pin, ""))
        for file in sorted({path for pattern in patterns for path in tree.root.glob(pattern)}):
            name = file.relative_to(tree.root).as_posix()
            tree.write(name, _written(tree.read(name), line, wanted), f"{pin} {wanted}")


def _written(text: str, line: str, wanted: str) -> str:
    def replaced(match: re.Match[str]) -> str:
        start = match.start(1) - match.start()
        return match[0][:start] + wanted + match[0][start + len(match[1]) :]

    return re.sub(line, replaced, text, flags=re.M)


def python(tree: Tree, raw: dict[str, Any]) -> None:
    """Our version in pyproject.toml; its pins, in requirements.lock."""
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
