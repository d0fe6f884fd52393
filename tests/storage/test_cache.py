"""The data-set cache, from a real MinIO to a folder."""

import json
import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from acts import put
from minio import Minio

from trainyard_agent.say import PlatformError
from trainyard_agent.store import cache, connect

CACHE = {"name": "mnist", "bucket": "cache", "prefix": "shared/mnist"}


@pytest.fixture
def client(server: Any) -> Minio:
    """A bucket with two objects in the prefix, one beside it whose name begins the same."""
    root = server.admin
    if not root.bucket_exists("cache"):
        root.make_bucket("cache")
    for item in root.list_objects("cache", recursive=True):
        root.remove_object("cache", item.object_name)
    put("cache", "shared/mnist/train/images", b"i" * 100_000)(root)
    put("cache", "shared/mnist/labels", b"l" * 10)(root)
    put("cache", "shared/mnist2/other", b"o")(root)
    return root


def tree(folder: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file() and path.name != cache.MARKER
    }


def test_copies_once_and_skips_what_is_unchanged(client: Minio, tmp_path: Path) -> None:
    assert cache.refresh(client, CACHE, tmp_path) == "2 objects, 100010 bytes fetched"
    assert tree(tmp_path / "datasets/mnist") == {"train/images": b"i" * 100_000, "labels": b"l" * 10}
    assert cache.refresh(client, CACHE, tmp_path) == "unchanged, 2 objects"


def test_change_is_swapped_in_and_only_it_is_fetched(client: Minio, tmp_path: Path) -> None:
    cache.refresh(client, CACHE, tmp_path)
    reader = (tmp_path / "datasets/mnist").resolve()
    put("cache", "shared/mnist/labels", b"n" * 12)(client)
    client.remove_object("cache", "shared/mnist/none")
    assert cache.refresh(client, CACHE, tmp_path) == "2 objects, 12 bytes fetched"
    assert tree(tmp_path / "datasets/mnist")["labels"] == b"n" * 12
    assert tree(reader)["labels"] == b"l" * 10, "who is still reading the former copy keeps it"
    client.remove_object("cache", "shared/mnist/labels")
    cache.refresh(client, CACHE, tmp_path)
    assert set(tree(tmp_path / "datasets/mnist")) == {"train/images"}
    assert not reader.exists(), "the copy before the former one is removed"


def test_interrupted_copy_goes_on_where_it_ended(client: Minio, tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setattr(cache, "BLOCK", 1000)
    monkeypatch.setattr(cache, "AT_ONCE", 1)
    asked: list[int] = []
    real = client.get_object

    def breaking(bucket: str, key: str, offset: int = 0, length: int = 0) -> Any:
        answer = real(bucket, key, offset=offset, length=length)
        asked.append(offset)
        if len(asked) == 2:  # labels come first
            reads = iter(range(40))
            whole = answer.read
            monkeypatch.setattr(answer, "read", lambda n: whole(n) if next(reads, None) is not None else b"")
        return answer

    monkeypatch.setattr(client, "get_object", breaking)
    with pytest.raises(PlatformError, match="ended after 40000 of 100000 bytes"):
        cache.refresh(client, CACHE, tmp_path)
    assert not (tmp_path / "datasets/mnist").exists(), "half a copy is not shown"
    assert cache.refresh(client, CACHE, tmp_path) == "2 objects, 60000 bytes fetched"
    assert asked == [0, 0, 40000]
    assert tree(tmp_path / "datasets/mnist")["train/images"] == b"i" * 100_000


def test_object_that_changes_meanwhile_is_not_mixed(client: Minio, tmp_path: Path, monkeypatch: Any) -> None:
    real = cache.listing

    def listed(*words: Any) -> list[cache.Entry]:
        found = real(*words)
        put("cache", "shared/mnist/labels", b"x" * 10)(client)
        return found

    monkeypatch.setattr(cache, "listing", listed)
    with pytest.raises(PlatformError, match="shared/mnist/labels changed while it was copied"):
        cache.refresh(client, CACHE, tmp_path)


@pytest.mark.parametrize("key", ["a/../../escape", "a//b", "labels/below"])
def test_keys_that_are_no_files_are_refused(client: Minio, tmp_path: Path, monkeypatch: Any, key: str) -> None:
    names = ["shared/mnist/labels", f"shared/mnist/{key}"]
    items = [SimpleNamespace(object_name=name, etag="e", size=1) for name in names]
    monkeypatch.setattr(client, "list_objects", lambda *words, **more: items)
    with pytest.raises(PlatformError, match="can't be"):
        cache.refresh(client, CACHE, tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_empty_prefix_waits_and_foreign_folder_stays(client: Minio, tmp_path: Path) -> None:
    assert cache.refresh(client, CACHE | {"prefix": "nothing"}, tmp_path) == "s3://cache/nothing is empty"
    (tmp_path / "datasets/mnist").mkdir(parents=True)
    with pytest.raises(PlatformError, match="is not a copy of this cache"):
        cache.refresh(client, CACHE, tmp_path)


def test_run_says_each_and_removes_what_is_gone(
    client: Minio, server: Any, environment: dict[str, str], tmp_path: Path, monkeypatch: Any, capsys: Any
) -> None:
    monkeypatch.setattr(connect, "client", lambda access: client)
    before = os.umask(0o077)
    contract = tmp_path / "contract.json"
    try:
        contract.write_text(json.dumps({"storage": {"caches": [CACHE, CACHE | {"name": "bad", "bucket": "absent"}]}}))
        with pytest.raises(PlatformError, match="not copied: bad"):
            cache.run(str(contract), str(tmp_path))
        assert (tmp_path / "datasets/mnist/labels").stat().st_mode & 0o777 == 0o644
        contract.write_text(json.dumps({"storage": {"caches": [CACHE | {"name": "other"}]}}))
        assert cache.run(str(contract), str(tmp_path)) == 0
    finally:
        os.umask(before)
    assert sorted(os.listdir(tmp_path / "datasets")) == ["other"]
    assert "data set mnist: removed" in capsys.readouterr().out
