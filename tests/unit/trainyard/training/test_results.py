"""Results of a run from a fake store, and from one that doesn't answer."""

import json
import tarfile
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from trainyard.errors import TrainyardError
from trainyard.training import results
from trainyard.training.transfer import Store, StoreUnavailableError


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


BASE = "runs/speech/jobs/r"


def fetched(shelf: Shelf) -> list[str]:
    return results.fetch(shelf, "speech/jobs/r", "results", Path("x"))  # type: ignore[arg-type]


def index(complete: bool, **files: int) -> bytes:
    return json.dumps({"complete": complete, "files": {f"results/{k}": {"size": v} for k, v in files.items()}}).encode()


def test_results_are_what_rank_0_left() -> None:
    shelf = Shelf({f"{BASE}/.trainyard.json": index(True, model=3), f"{BASE}/results/model": b"abc"})
    assert fetched(shelf) == ["model"]
    assert fetched(Shelf({})) == []
    late = Shelf({f"{BASE}/.trainyard.json": index(False, model=3), f"{BASE}/results/model": b"abc"})
    assert fetched(late) == ["model"]
    lost = Shelf({f"{BASE}/.trainyard.json": index(True, model=3)})
    with pytest.raises(TrainyardError, match="model is not in the store any longer"):
        fetched(lost)


def test_a_store_that_is_silent_for_a_moment_is_asked_again() -> None:
    shelf = Shelf({f"{BASE}/.trainyard.json": index(True, model=3), f"{BASE}/results/model": b"abc"}, unavailable=3)
    assert fetched(shelf) == ["model"]
    shelf.unavailable = 10_000
    with pytest.raises(TrainyardError, match="does not answer"):
        fetched(shelf)
    shelf.unavailable, shelf.error = 10_000, TrainyardError("the object store refuses")
    with pytest.raises(TrainyardError, match="refuses"):
        fetched(shelf)
    assert shelf.unavailable == 9_999


@pytest.mark.parametrize("name", ["../key", "a/../../key", "/key", "a//key", "./key"])
def test_no_file_that_a_pod_packs_lies_outside_the_folder(name: str, tmp_path: Path) -> None:
    def run(*_: Any, stdout: Any, **__: Any) -> Any:
        with tarfile.open(fileobj=stdout, mode="w|") as tar:
            tar.addfile(tarfile.TarInfo(name))
        return SimpleNamespace(code=0, stderr=json.dumps({"size": stdout.size, "sha256": stdout.sha256}))

    with pytest.raises(TrainyardError, match=f"{name}' can't be a file here"):
        Store(SimpleNamespace(exec=run), "p").tree("runs/vision/jobs/r", tmp_path / "folder")  # type: ignore[arg-type]
    assert not list(tmp_path.iterdir())
