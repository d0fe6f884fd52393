"""The pages of docs/contributing: the tests that they name exist, and the files of a kind are those that name one."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from trainyard.paths import ROOT

PAGES = sorted((ROOT / "docs/contributing").glob("*.md"))
TESTS = "\n".join(file.read_text() for file in (ROOT / "tests").rglob("test_*.py"))
KIND = (ROOT / "docs/contributing/add-a-kind.md").read_text()
FOLDERS = ("charts", "images", "manifests", "pipelines", "policies", "scripts")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_tests_that_are_named_exist(page: Path) -> None:
    for name in re.findall(r"`(test_[a-z0-9_]+)`", page.read_text()):
        assert f"def {name}(" in TESTS, name


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_a_page_ends_in_its_files(page: Path) -> None:
    assert "\n## Files, and what fails without them\n" in page.read_text()


def listed() -> list[str]:
    """Files and folders of the table; a name without a folder stands beside the one before it."""
    table = KIND.partition("## Files, and what fails without them")[2]
    found = []
    for row in re.findall(r"^\| (`.+?) \|", table, re.M):
        folder = ""
        for path in re.findall(r"`([^`]+)`", row):
            found.append(path if "/" in path else folder + path)
            folder = path.rpartition("/")[0] + "/" if "/" in path else folder
    return found


def test_a_kind_is_named_in_no_file_that_its_page_forgets() -> None:
    """PaddleJob came by the steps of the page."""
    files = [file for folder in FOLDERS for file in (ROOT / folder).rglob("*") if file.is_file()]
    files = [file for file in files if "__pycache__" not in file.parts]
    forgotten = []
    for file in [*files, ROOT / "versions.yaml"]:
        name = file.relative_to(ROOT).as_posix()
        if b"paddle" not in file.read_bytes().lower():
            continue
        name = name.replace("paddle", "<x>")
        if not any(name == path or (path.endswith("/") and name.startswith(path)) for path in listed()):
            forgotten.append(name)
    assert not forgotten
