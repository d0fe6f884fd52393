"""`trainyard versions digests`: registries' digests are written where none is pinned, and never over a pinned one."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from trainyard.errors import TrainyardError
from trainyard_dev.sync import digests, images

A, B = f"sha256:{'a' * 64}", f"sha256:{'b' * 64}"
TEXT = f"""\
trainyard: 0.1.0
components: {{}}
tools: {{}}
pull: {{base-image: 'docker.io/library/debian:x-slim'}}
images:
  etcd: {{ref: 'registry.k8s.io/etcd:3.6'}}
  ours: {{ref: 'site.invalid/trainyard/ours:0.1.0', own: true}}
published:
  base-image: {{by: 'https://file', digest: 'x-slim@{A}'}}   # proved
  etcd: {{by: 'https://file', digest: unproved}}
"""


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    (tmp_path / "versions.yaml").write_text(TEXT)
    return tmp_path


def knows(answers: dict[str, str]) -> Callable[[str], str]:
    def ask(ref: str) -> str:
        if ref not in answers:
            raise TrainyardError("registry can't be reached: no such host")
        return answers[ref]

    return ask


def test_an_unproved_digest_is_written_with_its_tag(tree: Path) -> None:
    seen = digests.fill(tree, knows({"registry.k8s.io/etcd:3.6": B, "docker.io/library/debian:x-slim": A}))
    assert [(one.name, one.bad) for one in seen] == [("base-image", False), ("etcd", False)]
    assert (tree / "versions.yaml").read_text() == TEXT.replace("unproved", f"3.6@{B}")


def test_a_tag_that_moved_is_told_and_the_pin_stays(tree: Path) -> None:
    seen = digests.fill(tree, knows({"docker.io/library/debian:x-slim": B}))
    assert [(one.name, one.bad) for one in seen] == [("base-image", True), ("etcd", False)]
    assert f"it is now x-slim@{B}, but x-slim@{A} is pinned" in seen[0].said
    assert seen[1].said == "not queried: registry can't be reached: no such host"
    assert (tree / "versions.yaml").read_text() == TEXT


def test_a_tag_that_is_gone_is_told(tree: Path) -> None:
    seen = digests.fill(tree, knows({"registry.k8s.io/etcd:3.6": ""}))
    assert seen[1].bad and seen[1].said == "the registry has no registry.k8s.io/etcd:3.6"


@pytest.mark.parametrize(("old", "new", "message"), [
    ("  etcd: {by", "  other: {by", "published lacks etcd"),
    ("  etcd: {by", "  ours: {by", "published.ours is not an upstream image"),
    ("x-slim'", "y-slim'", "published.base-image has the digest of x-slim"),
    ("unproved", "sha256:1", "published.etcd has the digest `sha256:1`"),
    ("etcd: {by: 'https://file'", "etcd: {by: somewhere", "published.etcd has no file"),
])  # fmt: skip
def test_what_is_said_of_images_is_held_against_them(old: str, new: str, message: str) -> None:
    assert list(images.published(yaml.safe_load(TEXT))) == []
    raw: Any = yaml.safe_load(TEXT.replace(old, new, 1))
    assert any(message in what for what, _ in images.published(raw))
