"""`trainyard publish` writes what can be made, states its sources, and names what is missing."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from trainyard_dev import publish
from trainyard_dev.attacks import results as attacks
from trainyard_dev.attacks.guards import REFUSED, Verdict
from trainyard_dev.corpus import results as asked


def test_what_is_there_is_written_and_what_is_missing_is_named_with_its_command(
    trainyard: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(publish, "OUT", tmp_path)
    monkeypatch.setattr(asked, "FILE", tmp_path / "corpus.json")
    one = attacks.Outcome("a", "a member", "tried", "RBAC", "", Verdict(REFUSED, "RBAC", "cannot"))
    attacks.write(tmp_path, attacks.Report("abc123", "1.36.4", 60, ["RBAC"], [one]))
    ended = trainyard("publish")
    assert ended.code == 0 and "attacks: of commit abc123\n" in ended.out
    assert "corpus: missing. no results of the corpus found" in ended.out
    assert "run `bin/trainyard corpus run`" in ended.out
    top = tmp_path / "publish"
    assert "1 attempts on 1 guards in 60 s, 0 let through." in (top / "attacks" / "attacks.md").read_text()
    assert len(list((top / "dashboards").glob("*.json"))) == 6 and len(list((top / "benchmarks").glob("*.svg"))) == 5
    assert not (top / "corpus").exists()
