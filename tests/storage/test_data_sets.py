"""`trainyard data` with a real MinIO: what a member and the platform engineer bring, see and delete, and what not."""

import json
import os
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
import yaml
from cluster import FakeApi
from played import Cluster

from servers import Server
from trainyard import contract as contracts
from trainyard.commands.data import data
from trainyard.errors import TrainyardError, UsageError
from trainyard.kube import Access, KubeError
from trainyard.training.transfer import folder as transfers
from trainyard.training.transfer.store import PROGRAM
from trainyard_agent.store import connect as stores
from trainyard_agent.store import s3_users

SYSTEM = "trainyard-system"
MNIST = ("train-images-idx3-ubyte.gz", "train-labels-idx1-ubyte.gz", "t10k-images-idx3-ubyte.gz",
         "t10k-labels-idx1-ubyte.gz")  # fmt: skip


@dataclass
class Said:
    """What a command printed: to standard output, to standard error."""

    out: str
    err: str


@pytest.fixture
def cluster(ready: Server, api: FakeApi, contract: dict[str, Any], tmp_path: Path, monkeypatch: Any) -> Cluster:
    """Two teams and the platform, each with the keys that the setup job gives it."""
    s3_users.ensure_platform(contract)
    made = Cluster(ready)
    for team, secret in api.secrets.items():
        made.keys[team] = replace(ready.root, user=secret["access-key"], password=secret["secret-key"])
    made.keys[SYSTEM] = stores.access()
    for bucket in ("datasets", "raw-data"):
        for item in ready.admin.list_objects(bucket, recursive=True):
            ready.admin.remove_object(bucket, item.object_name)
    values = tmp_path / "values.yaml"
    values.write_text(yaml.safe_dump({"global": {"contract": {"teams": contract["teams"]}}}))
    known = contracts.load(values)
    monkeypatch.setattr(contracts, "live", lambda kube: known)
    monkeypatch.setattr(Access, "connect", lambda self: made)
    monkeypatch.setattr(transfers, "PAUSE_S", 0.01)
    return made


@pytest.fixture
def run(cluster: Cluster, capsys: pytest.CaptureFixture[str]) -> Callable[..., Said]:
    def call(*words: str | Path) -> Said:
        capsys.readouterr()
        data.main([str(word) for word in words], standalone_mode=False)
        return Said(*capsys.readouterr())

    return call


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with a link, a folder in it, an empty file, a large one, and a name that isn't plain."""
    made = tmp_path / "digits"
    (made / "deep").mkdir(parents=True)
    (made / "a.txt").write_text("one")
    (made / "deep" / "ü b.bin").write_bytes(os.urandom(3 << 20))
    (made / "deep" / "empty").touch()
    (made / "link").symlink_to("a.txt")
    (made / "folder-link").symlink_to("deep")
    return made


def names(cluster: Cluster, prefix: str = "", bucket: str = "datasets") -> list[str]:
    root = stores.client(cluster.access)
    return [str(item.object_name) for item in root.list_objects(bucket, prefix, recursive=True)]


def test_a_members_folder_is_brought_listed_and_deleted(run: Any, cluster: Cluster, folder: Path) -> None:
    said = run("put", folder)
    assert said.out == "s3://datasets/vision/digits\n"
    assert "skipped: folder-link is not a file" in said.err
    assert "digits: 4 files sent\n" in said.err
    assert names(cluster) == [f"vision/digits/{name}" for name in ("a.txt", "deep/empty", "deep/ü b.bin", "link")]
    assert cluster.jobs == [], "the pod is still there"

    rows = json.loads(run("list", "-o", "json").out)
    assert [(one["name"], one["files"], one["bytes"]) for one in rows] == [("digits", 4, (3 << 20) + 6)]
    assert rows[0]["changed"].endswith("Z")
    table = run("list").out.splitlines()
    assert table[0].split() == ["NAME", "FILES", "SIZE", "CHANGED", "URI"]
    assert table[1].split()[:4] == ["digits", "4", "3.0", "MiB"]
    assert run("list", "digits", "-o", "name").out.splitlines() == ["a.txt", "deep/empty", "deep/ü b.bin", "link"]

    assert run("delete", "digits").out == "data set digits deleted: 4 files\n"
    assert names(cluster) == []
    assert "no data sets for vision; upload one with `trainyard data put FOLDER`" in run("list").err
    with pytest.raises(TrainyardError, match="no data set digits"):
        run("delete", "digits")
    with pytest.raises(TrainyardError, match="no data set digits"):
        run("list", "digits")


def test_what_is_there_is_not_sent_again(run: Any, cluster: Cluster, folder: Path) -> None:
    run("put", folder, "mine")
    assert json.loads(run("put", folder, "mine", "-o", "json").out) == {
        "name": "mine", "uri": "s3://datasets/vision/mine", "files": 4, "bytes": (3 << 20) + 6, "sent": 0,
    }  # fmt: skip
    assert cluster.ran.count("fill") == 1
    (folder / "a.txt").write_text("two")  # of the same size
    (folder / "new").write_text("new")
    said = run("put", folder, "mine")
    assert "mine: 3 files sent, 2 already stored" in said.err  # the link shows the changed file, too
    root = stores.client(cluster.access)
    assert root.get_object("datasets", "vision/mine/a.txt").read() == b"two"


def test_a_stream_that_breaks_goes_on_where_it_was(run: Any, cluster: Cluster, tmp_path: Path) -> None:
    many = tmp_path / "many"
    many.mkdir()
    for number in range(6):
        (many / f"{number}").write_bytes(os.urandom(2 << 20))
    seen: list[int] = []
    fill = cluster._pod

    def counted(command: Any, data: bytes, to: Any) -> Any:
        if command[4] == "fill":
            seen.append(len(data))
        return fill(command, data, to)

    cluster._pod = counted  # type: ignore[method-assign]
    cluster.ran.clear()

    def breaking(name: str, command: Any, **more: Any) -> Any:
        cluster.breaks, cluster.after = int(command[4] == "fill" and len(seen) < 2), 5 << 20
        return Cluster.exec(cluster, name, command, **more)

    cluster.exec = breaking  # type: ignore[method-assign]
    run("put", many)
    assert len(names(cluster, "vision/many/")) == 6
    assert cluster.ran == ["compare", "fill", "compare", "fill", "compare", "fill"]
    assert seen[2] < 6 << 20, "all was sent again"


def test_a_stream_that_never_holds_is_said(run: Any, cluster: Cluster, folder: Path, monkeypatch: Any) -> None:
    real = Cluster.exec

    def broken(self: Cluster, name: str, command: Any, **more: Any) -> Any:
        self.breaks = int(command[4] == "fill")
        return real(self, name, command, **more)

    monkeypatch.setattr(Cluster, "exec", broken)
    with pytest.raises(KubeError, match="the connection to the pod broke"):
        run("put", folder)
    assert cluster.ran.count("fill") == 3 and cluster.jobs == []


def test_a_file_that_changes_meanwhile_is_not_kept(run: Any, cluster: Cluster, folder: Path, monkeypatch: Any) -> None:
    real = transfers.digest

    def then_grow(*args: Any) -> Any:
        found = real(*args)
        (folder / "a.txt").write_text("longer than before")
        return found

    monkeypatch.setattr(transfers, "digest", then_grow)
    with pytest.raises(UsageError, match=r"a\.txt: the file changed while it was sent\. run the command again"):
        run("put", folder)
    assert "vision/digits/a.txt" not in names(cluster)


def test_what_all_teams_read_is_brought_by_the_platform_alone(run: Any, cluster: Cluster, folder: Path) -> None:
    cluster.namespace = "default"  # the platform engineer's
    assert run("put", folder, "shared/digits").out == "s3://datasets/shared/digits\n"
    assert cluster.made[-1]["metadata"]["namespace"] == SYSTEM
    assert "shared/digits/a.txt" in names(cluster)
    cluster.namespace, cluster.closed = "speech", (SYSTEM,)
    assert [one["name"] for one in json.loads(run("list", "-o", "json").out)] == ["shared/digits"]
    assert run("list", "shared/digits", "-o", "name").out.startswith("a.txt\n")
    for words in (("put", folder, "shared/other"), ("delete", "shared/digits")):
        with pytest.raises(KubeError, match=r"only the platform engineer can upload data for all teams: .*forbidden"):
            run(*words)
    assert len(names(cluster, "shared/")) == 4


def test_the_store_refuses_what_the_command_would_let_through(cluster: Cluster, folder: Path, run: Any) -> None:
    """A member who takes the program of the pod for another place is refused by the team's key."""
    run("put", folder)
    files = transfers.digest(transfers.scan(folder / "a.txt"), lambda _: None)
    sent = transfers.Stream(files[:1], lambda _: None).read()
    for place in ("datasets/speech/x", "datasets/shared/x", "raw-data/x", "datasets/x"):
        done = cluster._pod((*PROGRAM, "fill", place), sent, cluster.keys["vision"])
        assert done.returncode == 1 and b"AccessDenied" in done.stderr, place
    done = cluster._pod((*PROGRAM, "remove", "datasets/vision"), b"", cluster.keys["speech"])
    assert done.returncode == 1 and b"AccessDenied" in done.stderr
    assert len(names(cluster, "vision/")) == 4


def test_raw_data_is_listed_and_not_brought(run: Any, cluster: Cluster, folder: Path) -> None:
    root = stores.client(cluster.access)
    root.fput_object("raw-data", "scans/1", str(folder / "a.txt"))
    assert [one["uri"] for one in json.loads(run("list", "-o", "json").out)] == ["s3://raw-data/scans"]
    assert run("list", "raw-data", "-o", "name").out == "raw-data/scans\n"
    for words in (("put", folder, "raw-data/more"), ("delete", "raw-data/scans")):
        with pytest.raises(UsageError, match="upload it with keys of the store itself"):
            run(*words)
    assert names(cluster, bucket="raw-data") == ["scans/1"] and not cluster.ran.count("fill")


def test_the_example_s_data_come_by_one_command(run: Any, cluster: Cluster, tmp_path: Path, monkeypatch: Any) -> None:
    (tmp_path / "given" / "mnist").mkdir(parents=True)
    for name in MNIST:
        (tmp_path / "given" / "mnist" / name).write_text(name)
    monkeypatch.setenv("TRAINYARD_DATA", str(tmp_path / "given"))
    cluster.namespace = SYSTEM
    said = run("example")
    assert said.out == "s3://datasets/shared/mnist\n" and "shared/mnist is MNIST" in said.err
    assert names(cluster) == sorted(f"shared/mnist/{name}" for name in MNIST)
    assert "0 files sent, 4 already stored" in run("example").err
    assert run("list", "-o", "name").out == "shared/mnist\n"  # as the platform


def test_a_pod_of_an_older_release_is_said(run: Any, cluster: Cluster, folder: Path, monkeypatch: Any) -> None:
    real = Cluster._pod
    monkeypatch.setattr(
        Cluster, "_pod", lambda self, command, data, to: real(self, (*command[:4], "not-yet", *command[5:]), data, to)
    )
    with pytest.raises(TrainyardError, match=r"the platform's release doesn't support this yet\. ask your"):
        run("put", folder)


def test_a_folder_of_the_workspace(run: Any, cluster: Cluster, folder: Path, tmp_path: Path, monkeypatch: Any) -> None:
    """The volume is a folder of this machine here."""
    volume = tmp_path / "volume"
    volume.mkdir()
    with pytest.raises(TrainyardError, match="no claim workspace in vision"):
        run("put", folder, "workspace/digits")
    cluster.claims["workspace"] = {"metadata": {"name": "workspace"}}
    real = Cluster._pod

    def mounted(self: Cluster, command: Any, data: bytes, to: Any) -> Any:
        moved = [word.replace("/workspace", str(volume)) if word.startswith("/") else word for word in command]
        return real(self, moved, data, to)

    monkeypatch.setattr(Cluster, "_pod", mounted)
    assert run("put", folder, "workspace/digits").out == "workspace:/digits\n"
    pod = cluster.made[-1]["spec"]["template"]["spec"]
    assert pod["volumes"][-1]["persistentVolumeClaim"] == {"claimName": "workspace"}
    assert (volume / "digits/deep/ü b.bin").read_bytes() == (folder / "deep/ü b.bin").read_bytes()
    assert (volume / "digits").stat().st_mode & 0o777 == 0o775
    assert "digits: 0 files sent, 4 already stored" in run("put", folder, "workspace/digits").err
    assert run("list", "-o", "name").out.strip() == ""
    assert run("list", "workspace", "-o", "name").out == "workspace/digits\n"
    assert run("delete", "workspace/digits").out == "data set workspace/digits deleted: 4 files\n"
    assert list(volume.iterdir()) == [] and names(cluster) == []
