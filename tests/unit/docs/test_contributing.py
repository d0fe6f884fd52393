"""The pages of docs/contributing: the tests that they name exist, and the files of a kind are those that name one."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from trainyard.paths import ROOT
from trainyard_dev.sync import kinds
from trainyard_dev.verify import classes

PAGES = sorted((ROOT / "docs/contributing").glob("*.md"))
TESTS = "\n".join(file.read_text() for file in (ROOT / "tests").rglob("test_*.py"))
KIND = (ROOT / "docs/contributing/add-a-kind.md").read_text()
MOST_FILES = 8  # 9 with a builder and an example of its own
# Files that name Paddle and no kind of job: this test and its page, ids of a release, another operator's examples.
OTHERS = (
    "docs/contributing/add-a-kind.md",
    "scripts/trainyard_dev/corpus/started.py",
    "tests/unit/docs/test_contributing.py",
    "tests/unit/trainyard_dev/e2e/ids-0.3.0.txt",
)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_tests_that_are_named_exist(page: Path) -> None:
    for name in re.findall(r"`(test_[a-z0-9_]+)`", page.read_text()):
        assert f"def {name}(" in TESTS, name


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_a_page_ends_in_its_files(page: Path) -> None:
    assert "\n## Files, and what fails without them\n" in page.read_text()


def test_a_kind_is_the_files_of_its_page() -> None:
    """PaddleJob came by the steps of the page, whose first column names what is written by hand."""
    listed = set(re.findall(r"^\| `(\S+)`", KIND.partition("## Files, and what fails without them")[2], re.M))
    generated = classes.entries(classes.read(ROOT))
    found = {
        name.replace("paddle", "<x>")
        for name, text in classes.tracked(ROOT).items()
        if b"paddle" in text.lower() and classes.of(generated, name) == classes.HAND_WRITTEN
    }
    assert found - {*kinds.WRITTEN, *OTHERS} == listed
    assert len(listed) <= MOST_FILES
