"""Image references in the whole tree: pinned repositories are updated, any other is reported."""

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from trainyard_dev.images.crane import repository
from trainyard_dev.sync.tree import Tree
from trainyard_dev.versions import UNPROVED

HOSTS = r"(?:site\.invalid|docker\.io|ghcr\.io|nvcr\.io|quay\.io|gcr\.io|registry\.k8s\.io|localhost)"
# A reference that includes its host. One that continues with a placeholder, or is part of a URL, doesn't count.
FULL = re.compile(
    rf"(?<![\w./-]){HOSTS}/[a-z0-9]+(?:[._/-]+[a-z0-9]+)*(?::[\w][\w.-]*)?(?:@sha256:[0-9a-f]+)?(?![\w/]*[/{{<$:*])"
)
_IMAGE_KEY = re.compile(r"^\s*(?:-\s+)?[\"']?image[\"']?:\s*[\"']?([^\s\"'#]+)")
_LATEST = re.compile(r"[\w}/]:latest\b")
# Folders and files that are searched for references; tests invent their own.
SEARCHED = ("charts", "manifests", "images", "pipelines", "scripts", "docs", "README.md", "CONTRIBUTING.md", "policies")
# Invented references in attacks and cases, and those of published articles: only our own are updated there.
INVENTED = ("scripts/trainyard_dev/e2e/arrivals/", "policies/")
YAML_ONLY = ("charts", "manifests", "images")
TEXT = {".yaml", ".yml", ".tpl", ".txt", ".py", ".md", ".sh", ".json", ""}
ADD = "add it under images in versions.yaml, or use an image from there"


def references(raw: dict[str, Any]) -> set[str]:
    """Every reference that the tree may use."""
    made = {ref for image in raw["images"].values() for ref in (image["ref"], *image.get("also", ()))}
    return made | set(raw["pull"].values())


def by_repository(raw: dict[str, Any]) -> dict[str, str]:
    """The one pinned reference of each repository; an image's `also` names only count for repositories without one."""
    also = {repository(ref): ref for image in raw["images"].values() for ref in image.get("also", ())}
    own = {repository(image["ref"]): image["ref"] for image in raw["images"].values()}
    return also | {repository(ref): ref for ref in raw["pull"].values()} | own


def write(tree: Tree, raw: dict[str, Any]) -> None:
    """Full references in every searched file, and the default base of Containerfiles."""
    known, pinned = references(raw), by_repository(raw)
    for path in files(tree.root, SEARCHED):
        file = path.relative_to(tree.root).as_posix()
        text = path.read_text(errors="surrogateescape")
        if FULL.search(text):
            written = _written(file, tree.read(file), known, pinned, raw)
            tree.write(file, written, "image references")
            text = written
        if not file.startswith(INVENTED):
            for number, what, hint in in_text(file, text, known):
                tree.leave(f"{file}:{number}", what, hint)
        if file.endswith("/Containerfile"):
            for number, what, hint in stood_on(text, base_of(file, raw)):
                tree.leave(f"{file}:{number}", what, hint)


def _written(file: str, text: str, known: set[str], pinned: dict[str, str], raw: dict[str, Any]) -> str:
    def replaced(match: re.Match[str]) -> str:
        ref = match[0].rstrip(".")
        if file.endswith("/Containerfile") and repository(ref) == repository(base := base_of(file, raw)):
            return base + match[0][len(ref) :]
        if ref in known or not is_reference(file, ref):
            return match[0]
        return pinned.get(repository(ref), ref) + match[0][len(ref) :]

    return FULL.sub(replaced, text)


def base_of(file: str, raw: dict[str, Any]) -> str:
    """The reference that BASE defaults to in a Containerfile."""
    older = {image["dir"] for image in raw["images"].values() if image.get("older")}
    base: str = raw["pull"]["older-base-image" if file.rpartition("/")[0] in older else "base-image"]
    return base


def in_text(file: str, text: str, known: set[str]) -> Iterator[tuple[int, str, str]]:
    """References in a text file that are not pinned: line, problem, fix."""
    for number, line in enumerate(text.splitlines(), 1):
        if "/" not in line and ":latest" not in line:
            continue  # most lines
        found = {match[0].rstrip(".") for match in FULL.finditer(line) if is_reference(file, match[0])}
        if file.endswith((".yaml", ".yml")) and (match := _IMAGE_KEY.match(line)):
            found |= {match[1]} if "/" in match[1] and not re.search(r"\{\{|\$\{|<", match[1]) else set()
        for ref in sorted(found - known):
            yield number, f"the image {ref} is not in versions.yaml", ADD
        if file.startswith(YAML_ONLY) and not line.lstrip().startswith(("#", "//")) and _LATEST.search(line):
            yield number, "an image has tag latest", "use an exact tag"


def stood_on(text: str, base: str) -> Iterator[tuple[int, str, str]]:
    """Lines of a Containerfile whose FROM isn't `${BASE}`, scratch or an own stage, and a wrong default BASE."""
    stages = {"${BASE}", "scratch"}
    for number, line in enumerate(text.splitlines(), 1):
        words = [word for word in line.split() if not word.startswith("--platform=")]
        if line.startswith("ARG BASE=") and words[1] != f"BASE={base}":
            yield number, f"the default base is {words[1][5:]}", f"write ARG BASE={base}"
        if words and words[0] == "FROM":
            if words[1] not in stages:
                yield number, f"it is based on {words[1]}", "use FROM ${BASE}, scratch or a stage of the same file"
            if len(words) == 4:
                stages.add(words[3])


def upstream(raw: dict[str, Any]) -> dict[str, str]:
    """Images that others publish: name -> reference; those of `pull` by their key."""
    theirs = {n: i["ref"] for n, i in raw["images"].items() if not i.get("own") and not i.get("local")}
    return theirs | {name: str(ref) for name, ref in raw.get("pull", {}).items()}


def published(raw: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Images without an exact tag, and upstream's without the file that publishes them or without digest."""
    for ref in sorted(references(raw)):
        if ref.rpartition("/")[2].partition(":")[2] in ("", "latest"):
            yield f"the image {ref} has no exact tag", "name one"
    if "published" not in raw:
        return  # a tree that pulls nothing
    said, theirs = raw["published"], upstream(raw)
    for name in sorted(theirs.keys() - said.keys()):
        yield f"published lacks {name}", "add the upstream file that publishes it"
    for name in sorted(said.keys() - theirs.keys()):
        yield f"published.{name} is not an upstream image", "remove it"
    for name in sorted(said.keys() & theirs.keys()):
        digest, tag = str(said[name].get("digest", "")), theirs[name].rpartition(":")[2]
        if not str(said[name].get("by", "")).startswith("https://"):
            yield f"published.{name} has no file", "write the URL of the file under `by`"
        if digest == UNPROVED:
            continue
        if not re.fullmatch(r"[^@]+@sha256:[0-9a-f]{64}", digest):
            yield f"published.{name} has the digest `{digest}`", f"write TAG@sha256:… or {UNPROVED}"
        elif digest.partition("@")[0] != tag:
            hint = f"write {UNPROVED}, or what is proved of {tag}"
            yield f"published.{name} has the digest of {digest.partition('@')[0]}", hint


def files(root: Path, entries: Sequence[str]) -> Iterator[Path]:
    """The text files in these folders, and the entries that are files themselves."""
    for entry in entries:
        top = root / entry
        for file in sorted(top.rglob("*")) if top.is_dir() else [top]:
            hidden = any(part.startswith((".", "__")) for part in file.relative_to(root).parts[:-1])
            if file.is_file() and not hidden and file.suffix in TEXT and not file.match("charts/*/tests/*"):
                yield file


def is_reference(file: str, text: str) -> bool:
    """Whether a path is meant as an image: without a tag only in YAML, where the tag is then missing."""
    return ":" in text or (file.startswith(YAML_ONLY) and (not file.startswith("charts") or "/images/" in file))
