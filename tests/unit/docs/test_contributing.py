"""The pages of docs/contributing: tests that they name exist, and files that name a kind or a component are listed."""

import re
from pathlib import Path

import pytest

from trainyard.paths import ROOT
from trainyard_dev.sync import kinds
from trainyard_dev.verify import classes

PAGES = sorted((ROOT / "docs/contributing").glob("*.md"))
TESTS = "\n".join(file.read_text() for top in ("charts", "tests") for file in (ROOT / top).rglob("test_*.py"))
KIND, COMPONENT = ((ROOT / f"docs/contributing/add-a-{what}.md").read_text() for what in ("kind", "component"))
HEADING = "## Files, and what fails without them"
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
    assert f"\n{HEADING}\n" in page.read_text()


def test_a_kind_is_the_files_of_its_page() -> None:
    """PaddleJob came by the steps of the page, whose first column names what is written by hand."""
    listed = set(re.findall(r"^\| `(\S+)`", KIND.partition(HEADING)[2], re.M))
    generated = classes.entries(classes.read(ROOT))
    found = {
        name.replace("paddle", "<x>")
        for name, text in classes.tracked(ROOT).items()
        if b"paddle" in text.lower() and classes.of(generated, name) == classes.HAND_WRITTEN
    }
    assert found - {*kinds.WRITTEN, *OTHERS} == listed
    assert len(listed) <= MOST_FILES


def test_a_component_is_named_in_no_file_that_its_page_forgets() -> None:
    """metrics-server came by the steps of the page; its folder is its own, and tests may name it."""
    table, _, written = COMPONENT.partition(HEADING)[2].partition("\nAdd a test")
    paths = [re.findall(r"`([^`]+)`", row) for row in re.findall(r"^\| (`.+?) \|", table, re.M)]
    assert sum(map(len, paths)) <= 9
    known = set(re.findall(r"`([^`\s]+)`", table + written))
    folders = ("charts", "images", "manifests", "policies", "scripts/trainyard", "scripts/trainyard_agent")
    files = [file for folder in folders for file in (ROOT / folder).rglob("*.*") if file.suffix != ".md"]
    naming = [
        file for file in [*files, *ROOT.glob("*.yaml")] if file.is_file() and b"metrics-server" in file.read_bytes()
    ]
    names = {file.relative_to(ROOT).as_posix() for file in naming if "__pycache__" not in file.parts}
    forgotten = {name for name in names if not re.match(r"charts/(metrics-server|[^/]+/tests)/", name)} - known
    assert not forgotten
