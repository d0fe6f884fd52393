"""The lists of images' importable modules are written from their packages, and a differing file is found."""

import importlib.metadata
from pathlib import Path

import pytest
import yaml

from trainyard.paths import ROOT
from trainyard_dev.images import packages
from trainyard_dev.sync import importable, pages
from trainyard_dev.sync.tree import Tree

LIST = """
sets: {store: [minio]}
images:
  tool: {packages: [kfp]}
  trainer-a: {sets: [store], packages: [some-pillow, kfp], runs: [pytorch, job], system: [torch]}
  trainer-a-more: {packages: [extra-thing], runs: [job], lacks: [extra_thing.big]}
  trainer-a-cuda: {packages: [torch, maker-x, maker-y], runs: [pytorch]}
modules: {some-pillow: [PIL], kfp: [], 'maker-*': [maker], torch: [torch, torchgen]}
versions: {kfp: 2.1, some-pillow: 13, extra-thing: 0.1, torch: 3, maker-x: 1, maker-y: 2}
"""
VERSIONS = "images: {tool: {}, trainer-a: {}, trainer-a-more: {parent: trainer-a}, trainer-a-cuda: {}}\n"


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    (tmp_path / "images").mkdir()
    (tmp_path / packages.LIST).write_text(LIST)
    (tmp_path / "versions.yaml").write_text(VERSIONS)
    (tmp_path / "requirements.lock").write_text("minio==7.2\n")
    (tmp_path / importable.FILE).parent.mkdir(parents=True)
    (tmp_path / importable.FILE).write_text(importable.render(tmp_path))
    return tmp_path


def test_modules_follow_from_packages_and_from_the_image_below(tree: Path) -> None:
    made = yaml.safe_load((tree / importable.FILE).read_text())
    below = {"minio": "minio==7.2", "mnist": "", "PIL": "some-pillow==13", "torch": ""}
    assert made == {
        "trainer-a": {"key": "trainerA", "runs": ["pytorch", "job"], "modules": below},
        "trainer-a-more": {
            "key": "trainerAMore",
            "runs": ["job"],
            "lacks": ["extra_thing.big"],
            "modules": {"extra_thing": "extra-thing==0.1", **below},
        },
        "trainer-a-cuda": {
            "key": "trainerA",
            "runs": ["pytorch"],
            "cuda": True,
            "modules": {"maker": "maker-y==2", "mnist": "", "torch": "torch==3", "torchgen": "torch==3"},
        },
    }


def test_a_raised_package_is_a_difference(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pages, "MADE", {importable.FILE: pages.MADE[importable.FILE]})
    for text, changed in ((LIST, []), (LIST.replace("some-pillow: 13", "some-pillow: 14"), [importable.FILE])):
        (tree / packages.LIST).write_text(text)
        pages.write(made := Tree(tree, dry=True))
        assert list(made.changed) == changed


def test_the_modules_of_packages_that_are_installed_here_are_those_of_their_metadata() -> None:
    """Modules of all other packages are imported in their image: e2e train.imports-*."""
    raw = yaml.load((ROOT / packages.LIST).read_text(), yaml.BaseLoader)
    named = {name for one in packages.wishes(ROOT, packages.locked(ROOT)).images.values() for name in one.pins}
    compared = 0
    for name in named - {"kfp"}:
        try:
            files = importlib.metadata.files(name) or []
        except importlib.metadata.PackageNotFoundError:
            continue
        tops = {file.parts[0].partition(".")[0] for file in files if file.suffix in (".py", ".so")}
        due = set(raw["modules"].get(name, [name.replace("-", "_")]))
        assert due <= tops, f"{name} has {sorted(tops)}, the list says {sorted(due)}"
        compared += 1
    assert compared > 10
