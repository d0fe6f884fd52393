"""For all levels of tests: a run leaves nothing in the temporary folder."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest


@pytest.fixture(scope="session", autouse=True)
def _nothing_stays() -> Iterator[None]:
    """Gives the run, and all that it starts, a temporary folder of its own, and fails it when one of ours stays there.

    pytest's folders lie beside it: those of failed tests stay until the next run.
    """
    outer = tempfile.gettempdir()
    folder = tempfile.mkdtemp(prefix="trainyard-tests-")
    os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", outer)
    os.environ["TMPDIR"] = tempfile.tempdir = folder
    yield
    os.environ["TMPDIR"] = tempfile.tempdir = outer
    left = sorted(name for name in os.listdir(folder) if name.startswith(("trainyard-", "tmp.")))  # "tmp.": mktemp
    shutil.rmtree(folder, ignore_errors=True)
    assert not left, f"tests left {', '.join(left)} in the temporary folder"


def pytest_unconfigure() -> None:
    """After pytest has removed the folders of what passed: the one around them, if nothing failed."""
    for folder in Path(os.environ.get("PYTEST_DEBUG_TEMPROOT", tempfile.gettempdir())).glob("pytest-of-*"):
        with suppress(OSError):
            folder.rmdir()
