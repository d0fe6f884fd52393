"""Writers of what is plain text: image references, versions in prose and in Python's own files."""

from __future__ import annotations

import re
import tomllib
from typing import Any

from packaging.utils import canonicalize_name

from trainyard_dev.sync.tree import Tree
from trainyard_dev.verify import cli as verify
from trainyard_dev.verify import copies
from trainyard_dev.verify import images as verify_images

_PROJECT_VERSION = re.compile(r'^(version = ")([^"]+)(")$', re.M)
# Searched besides what `verify` searches: cases of policies name our images, and others that nobody has.
FURTHER = ("policies",)


def repository(ref: str) -> str:
    """A reference without tag and digest."""
    name = ref.partition("@")[0]
    return name.rpartition(":")[0] if ":" in name.rpartition("/")[2] else name


def by_repository(raw: dict[str, Any]) -> dict[str, str]:
    """The one pinned reference of each repository; what an image is `also` called counts only where it has no own."""
    also = {repository(ref): ref for image in raw["images"].values() for ref in image.get("also", ())}
    own = {repository(image["ref"]): image["ref"] for image in raw["images"].values()}
    return also | {repository(ref): ref for ref in raw["pull"].values()} | own


def references(tree: Tree, raw: dict[str, Any]) -> None:
    """Full references in every searched file, and the default base of Containerfiles."""
    known, pinned = verify_images.references(raw), by_repository(raw)

    def replaced(match: re.Match[str]) -> str:
        ref = match[0].rstrip(".")
        if file.endswith("/Containerfile") and repository(ref) == repository(base := verify_images.base_of(file, raw)):
            return base + match[0][len(ref) :]
        if ref in known or not verify_images.is_reference(file, ref):
            return match[0]
        return pinned.get(repository(ref), ref) + match[0][len(ref) :]

    for path in verify_images.files(tree.root, (*verify_images.SEARCHED, *FURTHER)):
        file = path.relative_to(tree.root).as_posix()
        text = path.read_text(errors="surrogateescape")
        if not verify_images.FULL.search(text):
            continue
        tree.write(file, verify_images.FULL.sub(replaced, tree.read(file)), "image references")


def prose(tree: Tree, raw: dict[str, Any]) -> None:
    """Versions that READMEs, pages, examples and modules repeat."""
    for file, copy in copies.places(tree.root, (*copies.COPIES, copies.GITOPS)):
        wanted = copies.pinned(raw, copy.pin)
        tree.write(file, copies.written(tree.read(file), copy, raw), f"{copy.pin} {wanted}")


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
    pins = {canonicalize_name(match[1]): match[3] for wish in wishes if (match := verify.PIN.match(wish))}
    lines = []
    for line in tree.read("requirements.lock").splitlines():
        match = verify.PIN.match(line)
        wanted = pins.get(canonicalize_name(match[1])) if match else None
        if match and wanted and wanted != match[3]:
            tree.note("requirements.lock", f"{match[1]} {wanted}")
            line = f"{match[1]}{match[2] or ''}=={wanted}{line[match.end() :]}"
        lines.append(line)
    tree.write("requirements.lock", "\n".join(lines) + "\n")
