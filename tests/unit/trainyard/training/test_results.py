"""What comes back of a run from a store that is played, and one that is silent."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from trainyard.errors import TrainyardError
from trainyard.training import results
from trainyard.training.transfer import StoreUnavailableError


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(results, "POLL_INTERVAL_S", 0.01)
    monkeypatch.setattr(results, "WAIT_S", 0.2)


class Shelf:
    """A store that is played: places and what lies there. `unavailable`: so many polls end with `error`."""

    error: TrainyardError = StoreUnavailableError("the object store does not answer")

    def __init__(self, files: dict[str, bytes], unavailable: int = 0) -> None:
        self.files, self.unavailable = files, unavailable

    def stat(self, place: str) -> object:
        if self.unavailable:
            self.unavailable -= 1
            raise self.error
        return self.files.get(place)

    def read(self, place: str) -> bytes:
        return self.files[place]

    def tree(self, place: str, target: Path, **_: Any) -> list[str]:
        return sorted(key.removeprefix(f"{place}/") for key in self.files if key.startswith(f"{place}/"))


def index(complete: bool, **files: int) -> bytes:
    return json.dumps({"complete": complete, "files": {f"results/{k}": {"size": v} for k, v in files.items()}}).encode()


def test_results_are_what_rank_0_left() -> None:
    base = "runs/speech/jobs/r"
    shelf = Shelf({f"{base}/.trainyard.json": index(True, model=3), f"{base}/results/model": b"abc"})
    assert results.fetch(shelf, "speech/jobs/r", "results", Path("x")) == ["model"]  # type: ignore[arg-type]
    assert results.fetch(Shelf({}), "speech/jobs/r", "results", Path("x")) == []  # type: ignore[arg-type]
    late = Shelf({f"{base}/.trainyard.json": index(False, model=3), f"{base}/results/model": b"abc"})
    assert results.fetch(late, "speech/jobs/r", "results", Path("x")) == ["model"]  # type: ignore[arg-type]
    lost = Shelf({f"{base}/.trainyard.json": index(True, model=3)})
    with pytest.raises(TrainyardError, match="model is not in the store any longer"):
        results.fetch(lost, "speech/jobs/r", "results", Path("x"))  # type: ignore[arg-type]


def test_a_store_that_is_silent_for_a_moment_is_asked_again() -> None:
    base = "runs/speech/jobs/r"
    shelf = Shelf({f"{base}/.trainyard.json": index(True, model=3), f"{base}/results/model": b"abc"}, unavailable=3)
    assert results.fetch(shelf, "speech/jobs/r", "results", Path("x")) == ["model"]  # type: ignore[arg-type]
    shelf.unavailable = 10_000
    with pytest.raises(TrainyardError, match="does not answer"):
        results.fetch(shelf, "speech/jobs/r", "results", Path("x"))  # type: ignore[arg-type]
    shelf.unavailable, shelf.error = 10_000, TrainyardError("the object store refuses")
    with pytest.raises(TrainyardError, match="refuses"):
        results.fetch(shelf, "speech/jobs/r", "results", Path("x"))  # type: ignore[arg-type]
    assert shelf.unavailable == 9_999
