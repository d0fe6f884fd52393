"""`trainyard publish` writes what can be made, says of what, and names what is missing."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from trainyard_dev import publish
from trainyard_dev.attacks import results as attacked
from trainyard_dev.attacks.guards import REFUSED, Verdict
from trainyard_dev.corpus import results as asked


def test_what_is_there_is_written_and_what_is_missing_is_named_with_its_command(
    trainyard: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(publish, "OUT", tmp_path)
    monkeypatch.setattr(attacked, "FILE", tmp_path / "attacks.json")
    monkeypatch.setattr(asked, "FILE", tmp_path / "corpus.json")
    one = attacked.Outcome("a", "a member", "tried", "RBAC", "", Verdict(REFUSED, "RBAC", "cannot"), ["RBAC"])
    attacked.write(attacked.Report("2026-11-26", "0.4.0", "abc123", "1.36.4", ["RBAC"], [one]))
    ended = trainyard("publish")
    assert ended.code == 0 and "attacks: of 2026-11-26, commit abc123\n" in ended.out
    assert "corpus: missing. there are no results of the corpus" in ended.out
    assert "run `bin/trainyard corpus run`" in ended.out
    top = tmp_path / "publish"
    assert "1 attempts, 0 let through." in (top / "attacks" / "attacks.md").read_text()
    assert len(list((top / "dashboards").glob("*.json"))) == 6 and len(list((top / "benchmarks").glob("*.svg"))) == 8
    assert not (top / "corpus").exists()
