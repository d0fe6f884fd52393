"""Names of data sets: the place of each, and invalid ones."""

from dataclasses import replace
from pathlib import Path

import pytest
from sites import of_values

from trainyard.contract import Contract
from trainyard.data import places
from trainyard.errors import TrainyardError, UsageError
from trainyard.kinds import TeamConfig
from trainyard.training import transfer
from trainyard.training.transfer import folder as transfers

TEAMS = [{"name": "vision", "gid": 20001}]


@pytest.fixture(scope="module")
def known() -> Contract:
    return of_values({"teams": TEAMS})


@pytest.mark.parametrize(
    ("name", "at", "uri"),
    [
        ("digits", "datasets/vision/digits", "s3://datasets/vision/digits"),
        ("shared/mnist", "datasets/shared/mnist", "s3://datasets/shared/mnist"),
        ("raw-data/scans-2.0", "raw-data/scans-2.0", "s3://raw-data/scans-2.0"),
        ("workspace/notes", "/workspace/notes", "workspace:/notes"),
    ],
)
def test_where_a_name_is(known: Contract, name: str, at: str, uri: str) -> None:
    found = places.place(known, "vision", name)
    assert (found.at, found.uri, found.name) == (at, uri, name)
    assert bool(found.read_only) == name.startswith("raw-data/")
    assert found.platform == name.startswith("shared/")


@pytest.mark.parametrize(
    "name", ["", "..", "a/b", "shared/", "shared/..", "runs/x", "a b", "/x", "shared/a/b", "-x", "shared"]
)
def test_what_is_no_name(known: Contract, name: str) -> None:
    with pytest.raises(UsageError, match="invalid name of a data set: ") as error:
        places.place(known, "vision", name)
    assert "use letters, digits, dots, hyphens" in error.value.hint


def test_a_list_covers_what_the_team_may_read(known: Contract) -> None:
    assert [one.at for one in places.roots(known, "vision")] == ["datasets/vision", "datasets/shared", "raw-data"]
    assert [one.at for one in places.roots(known, "trainyard-system")] == ["datasets/shared", "raw-data"]
    assert [one.claim for one in places.roots(known, "vision", "workspace")] == ["workspace"]
    assert places.is_kind(known, "raw-data") and not places.is_kind(known, "digits")


def test_the_platform_s_own_pod_has_its_keys_and_its_registry_s(known: Contract) -> None:
    storage = {**known.raw["storage"], "s3": {**known.raw["storage"]["s3"], "secret": "our-keys"}}
    raw = {**known.raw, "storage": storage, "imagePullSecrets": [{"name": "mirror"}]}
    job = transfer.manifest(TeamConfig.of_platform(replace(known, raw=raw)), "transfer-x")
    assert job["metadata"]["namespace"] == "trainyard-system"
    spec = job["spec"]["template"]["spec"]
    named = {one["valueFrom"]["secretKeyRef"]["name"] for one in spec["containers"][0]["env"] if "valueFrom" in one}
    assert named == {"our-keys"} and spec["imagePullSecrets"] == [{"name": "mirror"}]
    own = transfer.manifest(TeamConfig.of(known, "vision"), "transfer-x")["spec"]["template"]["spec"]
    named = {one["valueFrom"]["secretKeyRef"]["name"] for one in own["containers"][0]["env"] if "valueFrom" in one}
    assert named == {"trainyard-s3"} and "imagePullSecrets" not in own


def test_a_platform_without_such_a_bucket_says_so() -> None:
    ends = {"versioning": False, "expireDays": 0, "noncurrentDays": 0}
    runs = {"name": "runs", "access": "write", "teams": "own", **ends}
    with pytest.raises(TrainyardError, match="the platform has no bucket for data sets"):
        places.place(of_values({"teams": TEAMS, "storage": {"buckets": [runs]}}), "vision", "digits")


def test_a_folder_whose_name_is_none(tmp_path: Path) -> None:
    (tmp_path / "my data").mkdir()
    with pytest.raises(UsageError, match=r"invalid name of a data set: 'my data'\. use a name: trainyard data put"):
        places.named_after(tmp_path / "my data")
    assert places.named_after(tmp_path / "my data" / ".." / "digits") == "digits"


def test_folders_that_can_not_be_sent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(UsageError, match="no such file or folder"):
        transfers.scan(tmp_path / "absent")
    with pytest.raises(UsageError, match="the folder contains no files"):
        transfers.scan(tmp_path)
    (tmp_path / "large").write_bytes(b"xx")
    monkeypatch.setattr(transfers, "LARGEST", 1)
    with pytest.raises(UsageError, match="but the limit is 0 GiB"):
        transfers.scan(tmp_path)
    monkeypatch.undo()
    (tmp_path / ".trainyardignore").write_text("large\n")
    assert [name for name, _, _ in transfers.scan(tmp_path).files] == [".trainyardignore"]
    open(bytes(tmp_path) + b"/\xff", "w").close()
    with pytest.raises(UsageError, match=r"the name '\\\\udcff' is not UTF-8"):
        transfers.scan(tmp_path)


def test_a_stream_gives_the_same_however_it_is_read(tmp_path: Path) -> None:
    for name, size in (("a", 0), ("b", 511), ("c", 70_000)):
        (tmp_path / name).write_bytes(b"x" * size)
    files = transfers.digest(transfers.scan(tmp_path), lambda _: None)
    whole = transfers.Stream(files, lambda _: None).read()
    stream, pieces = transfers.Stream(files, lambda _: None), []
    while piece := stream.read(1000):
        assert len(piece) <= 1000
        pieces.append(piece)
    assert b"".join(pieces) == whole and len(whole) % 512 == 0
