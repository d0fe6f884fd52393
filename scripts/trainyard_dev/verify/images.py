"""Image references of the whole tree, compared with those of `versions.yaml`; part of `trainyard verify`."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import yaml

from trainyard_dev.versions import UNPROVED

# (file, what is wrong, what to change)
Finding = tuple[str, str, str]

HOSTS = r"(?:docker\.io|ghcr\.io|nvcr\.io|quay\.io|gcr\.io|registry\.k8s\.io|localhost)"
# A reference that names its host. One that goes on with a placeholder, or stands in a URL, is none.
FULL = re.compile(
    rf"(?<![\w./-]){HOSTS}/[a-z0-9]+(?:[._/-]+[a-z0-9]+)*(?::[\w][\w.-]*)?(?:@sha256:[0-9a-f]+)?(?![\w/]*[/{{<$:*])"
)
_IMAGE_KEY = re.compile(r"^\s*(?:-\s+)?[\"']?image[\"']?:\s*[\"']?([^\s\"'#]+)")
_NAMED = re.compile(r"[a-z0-9][\w.-]*(?:/[\w.-]+)+:[\w][\w.-]*")
_LATEST = re.compile(r"[\w}/]:latest\b")
# Folders and files whose text is searched for references; tests invent their own.
SEARCHED = ("charts", "manifests", "images", "pipelines", "scripts", "docs", "README.md", "CONTRIBUTING.md")
# What attempts invent, and what articles of the field name.
INVENTED = ("scripts/trainyard_dev/e2e/arrivals/",)
YAML_ONLY = ("charts", "manifests", "images")
TEXT = {".yaml", ".yml", ".tpl", ".txt", ".py", ".md", ".sh", ".json", ""}


def differences(root: Path, raw: dict[str, Any]) -> Iterator[Finding]:
    """Everything in the tree that names an image otherwise than `versions.yaml` does."""
    known = references(raw)
    yield from _in_versions(raw)
    yield from _published(raw)
    for file in files(root, SEARCHED):
        name = file.relative_to(root).as_posix()
        if not name.startswith(INVENTED):
            yield from in_text(name, file.read_text(errors="replace"), known)
    for file in sorted((root / "charts").glob("*/values.yaml")) + sorted((root / "charts").glob("*/profiles/*.yaml")):
        yield from in_values(file.relative_to(root).as_posix(), yaml.safe_load(file.read_text()) or {}, known)
    for file in sorted((root / "images").glob("*/Containerfile")):
        name = file.relative_to(root).as_posix()
        yield from in_containerfile(name, file.read_text(), base_of(name, raw))


def references(raw: dict[str, Any]) -> set[str]:
    """Every reference that the tree may use."""
    made = {ref for image in raw["images"].values() for ref in (image["ref"], *image.get("also", ()))}
    return made | set(raw["pull"].values())


def base_of(file: str, raw: dict[str, Any]) -> str:
    """The reference that BASE defaults to in a Containerfile."""
    older = {image["dir"] for image in raw["images"].values() if image.get("older")}
    base: str = raw["pull"]["older-base-image" if file.rpartition("/")[0] in older else "base-image"]
    return base


def in_text(file: str, text: str, known: set[str]) -> Iterator[Finding]:
    """References in the lines of any text file."""
    for number, line in enumerate(text.splitlines(), 1):
        found = {match[0].rstrip(".") for match in FULL.finditer(line) if is_reference(file, match[0])}
        if file.endswith((".yaml", ".yml")) and (match := _IMAGE_KEY.match(line)) and _is_literal(match[1]):
            found.add(match[1])
        for ref in sorted(found - known):
            yield f"{file}:{number}", f"the image {ref} is not in versions.yaml", _nearest(ref, known)
        if file.startswith(YAML_ONLY) and not line.lstrip().startswith(("#", "//")) and _LATEST.search(line):
            yield f"{file}:{number}", "an image has the tag latest", "name an exact tag"


def in_values(file: str, values: dict[str, Any], known: set[str]) -> Iterator[Finding]:
    """Chart values: names under `images`, pairs of repository and tag, and Volcano's one tag for all of its images."""
    short = {ref.partition("/")[2] for ref in known}
    volcano = {ref.rpartition(":")[2] for ref in known if "/volcanosh/" in ref}
    for path, value in _leaves(values):
        keys = path.split(".")
        if "images" in keys[:-1] and isinstance(value, str) and _NAMED.fullmatch(value) and value not in short | known:
            yield file, f"{path} is {value}, which is not in versions.yaml", _nearest(value, known)
        if keys[-1] == "image_tag_version" and value not in volcano:
            yield file, f"{path} is {value}", f"versions.yaml has {', '.join(sorted(volcano))}"
        if keys[-1] == "image" and isinstance(value, dict) and {"repository", "tag"} <= set(value):
            ref = f"{value['repository']}:{value['tag']}"
            if ref not in short | known:
                yield file, f"{path} is {ref}, which is not in versions.yaml", _nearest(ref, known)


def in_containerfile(file: str, text: str, base: str) -> Iterator[Finding]:
    """A Containerfile stands on `${BASE}`, on nothing, or on a stage of its own; BASE defaults to the pinned base."""
    stages: set[str] = set()
    for number, line in enumerate(text.splitlines(), 1):
        words = line.split()
        if line.startswith("ARG BASE=") and words[1] != f"BASE={base}":
            yield f"{file}:{number}", f"the default base is {words[1][5:]}", f"write ARG BASE={base}"
        if words and words[0] == "FROM":
            if words[1] not in {"${BASE}", "scratch", *stages}:
                yield (
                    f"{file}:{number}",
                    f"it stands on {words[1]}",
                    "use FROM ${BASE}, scratch or a stage of the same file",
                )
            if len(words) == 4:
                stages.add(words[3])


def _in_versions(raw: dict[str, Any]) -> Iterator[Finding]:
    for ref in sorted(references(raw)):
        tag = ref.rpartition("/")[2].partition(":")[2]
        if not tag or tag == "latest":
            yield "versions.yaml", f"the image {ref} has no exact tag", "name one"


def upstream(raw: dict[str, Any]) -> dict[str, str]:
    """The images that others publish: name -> reference; those of `pull` by their key."""
    theirs = {n: i["ref"] for n, i in raw["images"].items() if not i.get("own") and not i.get("local")}
    return theirs | {name: str(ref) for name, ref in raw.get("pull", {}).items()}


def _published(raw: dict[str, Any]) -> Iterator[Finding]:
    """Each of upstream's images has the file that publishes it, and a digest of this very tag or `unproved`."""
    if "published" not in raw:
        return  # a tree that pulls nothing
    said, theirs = raw["published"], upstream(raw)
    for name in sorted(theirs.keys() - said.keys()):
        yield "versions.yaml", f"published has no {name}", "name the file of upstream's that publishes it"
    for name in sorted(said.keys() - theirs.keys()):
        yield "versions.yaml", f"published.{name} is no image of upstream's", "take it out"
    for name in sorted(said.keys() & theirs.keys()):
        digest, tag = str(said[name].get("digest", "")), theirs[name].rpartition(":")[2]
        if not str(said[name].get("by", "")).startswith("https://"):
            yield "versions.yaml", f"published.{name} names no file", "write the URL of the file under `by`"
        if digest == UNPROVED:
            continue
        if not re.fullmatch(r"[^@]+@sha256:[0-9a-f]{64}", digest):
            yield "versions.yaml", f"published.{name} has the digest `{digest}`", f"write TAG@sha256:… or {UNPROVED}"
        elif digest.partition("@")[0] != tag:
            hint = f"write {UNPROVED}, or what is proved of {tag}"
            yield "versions.yaml", f"published.{name} has the digest of {digest.partition('@')[0]}", hint


def files(root: Path, entries: Sequence[str]) -> Iterator[Path]:
    """The text files of these folders, and those of the entries that are files."""
    for entry in entries:
        top = root / entry
        for file in sorted(top.rglob("*")) if top.is_dir() else [top]:
            hidden = any(part.startswith((".", "__")) for part in file.relative_to(root).parts[:-1])
            if file.is_file() and not hidden and (file.suffix in TEXT):
                yield file


def is_reference(file: str, text: str) -> bool:
    """Whether a path is meant as an image: without a tag only YAML means one, which then lacks its tag."""
    return ":" in text or (file.startswith(YAML_ONLY) and not file.startswith("charts"))


def _is_literal(text: str) -> bool:
    return "/" in text and not any(sign in text for sign in ("{{", "${", "<"))


def _leaves(value: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """(dotted path, value) of every node of a values tree, maps included."""
    if isinstance(value, dict):
        for key, below in value.items():
            inner = f"{path}.{key}" if path else str(key)
            yield inner, below
            yield from _leaves(below, inner)
    elif isinstance(value, list):
        for index, below in enumerate(value):
            yield from _leaves(below, f"{path}[{index}]")


def _nearest(ref: str, known: set[str]) -> str:
    """What to write instead: the pinned reference of the same repository, if there is one."""
    name = ref.partition("@")[0].rpartition("/")[2].partition(":")[0]
    same = sorted(k for k in known if k.rpartition("/")[2].partition(":")[0] == name)
    return f"write {same[0]}" if same else "add it to versions.yaml under images, or use one from there"
