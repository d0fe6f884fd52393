"""A folder with a script, a team's platform, and the command line as tests of training call it."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from sites import of_values
from train_cluster import VALUES

from trainyard.contract import Contract
from trainyard.kinds import TeamConfig
from trainyard.training import follow, results


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(follow, "POLL_INTERVAL_S", 0.01)
    monkeypatch.setattr(results, "POLL_INTERVAL_S", 0.01)
    monkeypatch.setattr(results, "WAIT_S", 0.2)


@pytest.fixture
def platform(tmp_path: Path) -> Path:
    file = tmp_path / "values.yaml"
    file.write_text(yaml.safe_dump({"global": {"contract": VALUES}}))
    return file


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "digits"
    made.mkdir()
    (made / "train.py").write_text("import torch\n")
    return made


@pytest.fixture
def known() -> Contract:
    return of_values(VALUES)


@pytest.fixture
def team_config(known: Contract) -> TeamConfig:
    return TeamConfig.of(known, "speech")


@pytest.fixture
def run(trainyard: Callable[..., Any]) -> Callable[..., tuple[int, str, str]]:
    def call(*words: str | Path) -> tuple[int, str, str]:
        ended = trainyard(*map(str, words))
        assert "Traceback" not in ended.out + ended.err
        return ended.code, ended.out, ended.err

    return call
