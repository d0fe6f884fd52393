"""Backup and restore of a real bucket and a real folder, to a folder and to a bucket."""

import gzip
import io
import json
import os
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from minio import Minio
from minio.error import S3Error

from trainyard_agent.say import PlatformError
from trainyard_agent.store import archive, backup, restore, targets
from trainyard_agent.store.restore import RestoreRequest
from trainyard_agent.store.targets import BucketTarget, FolderTarget, Target

NOW = datetime(2026, 5, 4, 2, 17, tzinfo=UTC)
STAMP = "20260504T021700Z"
ROOT = os.geteuid() == 0


class World:
    """A store and a file server with something of the team vision, and a place for backups."""

    def __init__(self, client: Minio, export: Path, target: Target, contract: dict[str, Any]) -> None:
        self.client, self.export, self.target, self.contract = client, export, target, contract
        self.workspace = export / "vision" / "workspace"
        (self.workspace / "run" / "deep").mkdir(parents=True)
        self.file = self.workspace / "run" / "deep" / "model.pt"
        self.file.write_bytes(os.urandom(300_000))
        (self.workspace / "latest").symlink_to("run/deep")
        (self.workspace / "ümläut \udcff").write_text("odd name")
        os.link(self.file, self.workspace / "copy.pt")
        os.mkfifo(self.workspace / "pipe")
        if ROOT:
            os.chown(self.file, 1234, 20001)
            os.chown(self.workspace, 0, 20001)
        self.file.chmod(0o640)
        self.workspace.chmod(0o2770)
        os.utime(self.file, (1_700_000_000, 1_700_000_000.25))
        for item in client.list_objects("runs", recursive=True):
            client.remove_object("runs", item.object_name)
        self.body = os.urandom(200_000)
        client.put_object("runs", "vision/job/model", io.BytesIO(self.body), len(self.body), "x/y", {"epoch": "3"})
        client.put_object("runs", "speech/ödd", io.BytesIO(b"odd"), 3)

    def back_up(self, now: datetime = NOW, buckets: tuple[str, ...] = ("runs",)) -> dict[str, Any]:
        wanted = backup.sources(self.contract, list(buckets), self.export)
        return backup.back_up(wanted, lambda: self.client, self.target, now)[1]

    def restore(self, **wish: Any) -> dict[str, Any]:
        return restore.restore(
            RestoreRequest(**({"stamp": "latest"} | wish)), self.target, self.contract, self.export, lambda: self.client
        )

    def files(self, folder: Path) -> dict[str, Any]:
        """Everything that must come back, by path."""
        found = {}
        for path in sorted(folder.rglob("*")):
            st = path.lstat()
            body = path.readlink() if path.is_symlink() else path.read_bytes() if path.is_file() else None
            when = st.st_mtime if path.is_file() and not path.is_symlink() else None
            if not path.is_fifo():
                found[str(path.relative_to(folder))] = (st.st_mode, st.st_uid, st.st_gid, when, body)
        return found


@pytest.fixture(params=["folder", "bucket"])
def world(request: pytest.FixtureRequest, runs: Minio, tmp_path: Path, contract: dict[str, Any]) -> World:
    client = runs
    if not client.bucket_exists("backups"):
        client.make_bucket("backups")
    folder = tmp_path / "backups"
    folder.mkdir()
    places = {"folder": FolderTarget(folder), "bucket": BucketTarget(client, "backups", f"site/{tmp_path.name}")}
    contract["release"] = {"name": "trainyard", "namespace": "trainyard-system"}
    return World(client, tmp_path / "export", places[request.param], contract)


def test_what_was_destroyed_comes_back_as_it_was(world: World) -> None:
    before, top = world.files(world.workspace), world.workspace.stat()
    manifest = world.back_up()
    assert set(manifest["archives"]) == {"bucket-runs", "workspace-vision"}, "speech has no workspace yet"
    assert manifest["archives"]["workspace-vision"]["names"] == ["pipe"]
    os.rename(world.workspace.parent, world.export / "gone")
    for key in ("vision/job/model", "speech/ödd"):
        world.client.remove_object("runs", key)
    done = world.restore()
    assert world.files(world.workspace) == before
    after = world.workspace.stat()
    assert (after.st_mode, after.st_gid) == (top.st_mode, top.st_gid)
    assert world.file.stat().st_ino == (world.workspace / "copy.pt").stat().st_ino, "a hard link stays one"
    answer = world.client.get_object("runs", "vision/job/model")
    assert answer.read() == world.body
    assert (answer.headers["content-type"], answer.headers["x-amz-meta-epoch"]) == ("x/y", "3")
    assert world.client.get_object("runs", "speech/ödd").read() == b"odd"
    assert done["bucket-runs"].restored == 2 and not done["workspace-vision"].kept


def test_a_file_of_holes_stops_nobody(world: World, capsys: pytest.CaptureFixture[str]) -> None:
    """It costs its owner nothing, and reading it would take days."""
    (world.workspace / "endless").touch()
    os.truncate(world.workspace / "endless", 4 << 40)
    (world.workspace / "model-with-a-hole").write_bytes(b"x")
    os.truncate(world.workspace / "model-with-a-hole", 5_000_000)
    held = world.back_up()["archives"]["workspace-vision"]
    assert (held["left_out"], held["names"]) == (2, ["endless", "pipe"])
    assert "workspace-vision: 2 skipped: not regular files or mostly holes" in capsys.readouterr().out
    (world.workspace / "model-with-a-hole").unlink()
    world.restore()
    assert (world.workspace / "model-with-a-hole").read_bytes() == b"x".ljust(5_000_000, b"\0")


def test_newer_data_stay_unless_told(world: World) -> None:
    old = world.file.read_bytes()
    world.back_up()
    world.file.unlink()
    world.file.write_bytes(b"newer")
    (world.workspace / "only-here").write_text("new file")
    world.client.put_object("runs", "vision/job/model", io.BytesIO(b"newer"), 5)
    done = world.restore()
    assert done["workspace-vision"].kept == ["run/deep/model.pt"]
    assert done["bucket-runs"].kept == ["vision/job/model"]
    assert world.file.read_bytes() == b"newer"
    assert world.client.get_object("runs", "vision/job/model").read() == b"newer"
    world.restore(overwrite=True)
    assert world.file.read_bytes() == old
    assert world.client.get_object("runs", "vision/job/model").read() == world.body
    assert (world.workspace / "only-here").read_text() == "new file", "what the backup lacks stays in any case"


def test_restored_beside(world: World) -> None:
    before = world.files(world.workspace)
    world.back_up()
    world.file.write_bytes(b"changed")
    world.restore(into="from-may", path="")
    assert world.files(world.workspace / "from-may") == before
    assert world.file.read_bytes() == b"changed"
    assert world.client.get_object("runs", "vision/from-may/job/model").read() == world.body
    with pytest.raises(PlatformError, match=r"from-may already exists in"):
        world.restore(into="from-may", only=("workspace-vision",))


def test_only_a_part(world: World) -> None:
    world.back_up()
    world.client.remove_object("runs", "vision/job/model")
    world.client.remove_object("runs", "speech/ödd")
    assert set(world.restore(only=("bucket-runs",), path="vision/job")) == {"bucket-runs"}
    assert [item.object_name for item in world.client.list_objects("runs", recursive=True)] == ["vision/job/model"]
    with pytest.raises(PlatformError, match="has no workspace-speech; it has bucket-runs, workspace-vision"):
        world.restore(only=("workspace-speech",))


def test_links_lead_nobody_out_of_the_workspace(world: World, tmp_path: Path) -> None:
    world.back_up()
    victim = tmp_path / "victim"
    victim.mkdir()
    os.rename(world.workspace / "run", world.workspace / "moved")
    (world.workspace / "run").symlink_to(victim)  # placed there by the team, for root to follow
    done = world.restore(only=("workspace-vision",))
    assert list(victim.iterdir()) == []
    assert "run/deep/model.pt" in done["workspace-vision"].kept
    manifest = world.back_up(NOW + timedelta(hours=1))
    assert manifest["archives"]["workspace-vision"]["bytes"] < 700_000, "the link is kept as a link"


def damage(world: World, name: str) -> None:
    """Flip one byte of an archive."""
    with world.target.read(STAMP, name) as source:
        body = bytearray(source.read())
    body[len(body) // 2] ^= 1
    if isinstance(world.target, FolderTarget):
        (world.target.root / STAMP / name).write_bytes(body)
    else:
        assert isinstance(world.target, BucketTarget)
        world.client.put_object("backups", f"{world.target.prefix}{STAMP}/{name}", io.BytesIO(body), len(body))


def test_damaged_archive_is_refused_before_anything_is_touched(world: World) -> None:
    world.back_up()
    damage(world, "workspace-vision.tar.gz")
    world.client.remove_object("runs", "vision/job/model")
    with pytest.raises(PlatformError, match=r"workspace-vision.tar.gz of backup .* is not what was written"):
        world.restore()
    assert "vision/job/model" not in [i.object_name for i in world.client.list_objects("runs", recursive=True)]


def test_source_that_fails_is_named_and_leaves_no_half_archive(world: World) -> None:
    manifest = world.back_up(buckets=("absent", "runs"))
    assert set(manifest["failed"]) == {"bucket-absent"}
    assert "NoSuchBucket" in manifest["failed"]["bucket-absent"]
    assert set(world.restore()) == {"bucket-runs", "workspace-vision"}
    with (
        pytest.raises((FileNotFoundError, S3Error), match=r"No such file|NoSuchKey"),
        world.target.read(STAMP, "bucket-absent.tar.gz"),
    ):
        pass


def test_nothing_at_all_is_an_error_and_no_backup(world: World) -> None:
    with pytest.raises(PlatformError, match="nothing was backed up: S3Error"):
        backup.back_up([backup.Source("bucket-absent", bucket="absent")], lambda: world.client, world.target, NOW)
    assert world.target.stamps() == [] and world.target.unfinished() == []
    with pytest.raises(PlatformError, match="no backup found"):
        world.restore()


def test_unfinished_backup_does_not_count_and_old_ones_go(world: World) -> None:
    for day in range(4):
        world.back_up(NOW + timedelta(days=day))
    with world.target.write("20260401T000000Z", "bucket-runs.tar.gz") as sink:
        sink.write(b"half")
    assert len(world.target.stamps()) == 4
    gone = backup.thin(world.target, 2, NOW + timedelta(days=4))
    assert gone == [STAMP, "20260505T021700Z", "20260401T000000Z"]
    assert world.target.stamps() == ["20260506T021700Z", "20260507T021700Z"]
    assert world.target.unfinished() == []
    with pytest.raises(PlatformError, match="no backup 20260504T021700Z; available: 20260506T021700Z"):
        targets.find(world.target, STAMP)


def test_newest_whole_backup_outlives_incomplete_ones(
    world: World, environment: dict[str, str], monkeypatch: Any, tmp_path: Path
) -> None:
    contract = tmp_path / "contract.json"
    contract.write_text(json.dumps(world.contract))
    monkeypatch.setattr(backup.connect, "client", lambda access: world.client)
    world.back_up()
    for hours in (1, 2):
        with pytest.raises(PlatformError, match="is complete, except for bucket-absent"):
            backup.run(str(contract), ["runs", "absent"], "", world.target, 1, NOW + timedelta(hours=hours))
    assert world.target.stamps() == [STAMP, "20260504T041700Z"]
    assert backup.run(str(contract), ["runs"], "", world.target, 1, NOW + timedelta(hours=3)) == 0
    assert world.target.stamps() == ["20260504T051700Z"]


def test_files_that_vanish_meanwhile_are_left_out(world: World, monkeypatch: Any) -> None:
    """Each at the moment before it is read: a folder, a file, a link."""
    real, deep = archive._info, world.workspace / "run" / "deep"
    (deep / "b-folder").mkdir()
    (deep / "c-file").write_text("")
    (deep / "d-link").symlink_to("x")

    def info(path: str, status: os.stat_result) -> Any:
        if path == "run/deep":  # listed by now
            (deep / "b-folder").rmdir()
            (deep / "c-file").unlink()
        if path == "run/deep/d-link":
            (deep / "d-link").unlink()
        return real(path, status)

    monkeypatch.setattr(archive, "_info", info)
    assert not world.back_up()["failed"]
    monkeypatch.undo()
    os.rename(world.workspace, world.export / "gone")
    world.restore(only=("workspace-vision",))
    assert {path for path in world.files(world.workspace) if path.startswith("run/")} == {
        "run/deep",
        "run/deep/model.pt",
    }


def test_part_of_a_workspace_brings_its_folders(world: World) -> None:
    mode = (world.workspace / "run").stat().st_mode
    world.back_up()
    os.rename(world.workspace / "run", world.export / "gone")
    (world.workspace / "latest").unlink()
    world.restore(only=("workspace-vision",), path="run/deep/model.pt")
    assert world.file.is_file() and (world.workspace / "run").stat().st_mode == mode
    assert not (world.workspace / "latest").is_symlink()


def test_a_backup_is_listed_and_restored_at_will(world: World, tmp_path: Path, capsys: Any, monkeypatch: Any) -> None:
    world.back_up()
    with world.target.read(STAMP, "bucket-runs.tar.gz") as source:
        assert gzip.decompress(source.read())[257:262] == b"ustar"
    contract = tmp_path / "contract.json"
    contract.write_text(json.dumps(world.contract))
    assert restore.run(str(contract), str(world.export), world.target, {}) == 0
    said = capsys.readouterr().out
    assert f"backup {STAMP}" in said and "workspace-vision: 6 entries" in said, "nobody asked to restore"
    done = world.restore()
    assert (done["bucket-runs"].restored, done["bucket-runs"].same) == (0, 2), "nothing has changed"
    assert done["workspace-vision"].same >= 2
    monkeypatch.setattr(backup, "FORMAT", 2)
    with pytest.raises(PlatformError, match="written by another version, with format 1"):
        world.restore()


@pytest.mark.parametrize(
    ("env", "reason"),
    [
        ({"RESTORE_INTO": "../x"}, "must be a plain name"),
        ({"RESTORE_INTO": "a/b"}, "must be a plain name"),
        ({"RESTORE_INTO": ".trainyard"}, "must be a plain name"),
        ({"RESTORE_OVERWRITE": "yes"}, "it must be true or false"),
    ],
)
def test_wrong_wishes_are_refused(env: dict[str, str], reason: str) -> None:
    with pytest.raises(PlatformError, match=reason):
        RestoreRequest.read(env)


def test_wish_is_read_from_the_environment() -> None:
    env = {"RESTORE_FROM": "latest", "RESTORE_ONLY": "a, b", "RESTORE_PATH": "/x/y/", "RESTORE_OVERWRITE": "true"}
    assert RestoreRequest.read(env) == RestoreRequest("latest", ("a", "b"), "x/y", "", True)
