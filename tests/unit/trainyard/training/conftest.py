"""A folder with a script, a team's platform, and the command line as tests of training call it."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml
from train_cluster import VALUES

from trainyard import cli, contract
from trainyard.kinds import TeamConfig


@pytest.fixture
def platform(tmp_path: Path) -> Path:
    file = tmp_path / "values.yaml"
    file.write_text(yaml.safe_dump(VALUES))
    return file


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "digits"
    made.mkdir()
    (made / "train.py").write_text("import torch\n")
    return made


@pytest.fixture
def team_config(platform: Path) -> TeamConfig:
    return TeamConfig.of(contract.load(platform), "speech")


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Callable[..., tuple[int, str, str]]:
    def call(*words: str | Path) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["trainyard", *map(str, words)])
        monkeypatch.setattr("signal.signal", lambda *_: None)
        with pytest.raises(SystemExit) as ended:
            cli.main()
        shown = capsys.readouterr()
        assert "Traceback" not in shown.out + shown.err
        return int(ended.value.code or 0), shown.out, shown.err

    return call
