"""Log-ins are stored in a folder of the test."""

from pathlib import Path

import pytest

from trainyard.login import store


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv(store.FOLDER, str(tmp_path / "login"))
    return tmp_path
