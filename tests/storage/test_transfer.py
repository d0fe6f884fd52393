"""Transfer between a member's machine and the store: the pod's program and a real MinIO, the cluster's part played."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from played import Cluster

from trainyard.errors import TrainyardError
from trainyard.kinds import TeamConfig
from trainyard.paths import ROOT
from trainyard.training import transfer
from trainyard.training.transfer import pod

BUCKET = "runs"


@pytest.fixture
def store(cluster: Cluster, team_config: TeamConfig) -> Iterator[transfer.Store]:
    with transfer.open_store(cluster, team_config) as found:  # type: ignore[arg-type]
        yield found


def test_the_same_content_is_sent_once(cluster: Cluster, store: Any, tmp_path: Path) -> None:
    source, seen = tmp_path / "code", []
    source.write_bytes(os.urandom(100_000))
    place = f"{BUCKET}/vision/code/one"
    assert store.stat(place) is None
    assert store.put(source, place, progress=seen.append) is True
    assert store.put(source, place) is False
    store.get(place, tmp_path / "deep" / "back")
    assert sum(seen) == 100_000 and cluster.ran.count("put") == 1
    assert (tmp_path / "deep/back").read_bytes() == source.read_bytes()
    assert os.listdir(tmp_path / "deep") == ["back"]


def test_a_folder_comes_back_as_files(store: Any, tmp_path: Path) -> None:
    for name in ("a.txt", "sub/b.txt"):
        (tmp_path / "x").write_text(name)
        store.put(tmp_path / "x", f"{BUCKET}/vision/jobs/folder/{name}")
    assert store.tree(f"{BUCKET}/vision/jobs/folder", tmp_path / "out") == ["a.txt", "sub/b.txt"]
    assert store.list(f"{BUCKET}/vision/jobs/folder") == {"a.txt": 5, "sub/b.txt": 9}
    assert (tmp_path / "out/sub/b.txt").read_text() == "sub/b.txt"


def test_a_broken_stream_is_begun_anew(cluster: Cluster, store: Any, tmp_path: Path) -> None:
    source = tmp_path / "x"
    source.write_text("hello")
    store.put(source, f"{BUCKET}/vision/broken")
    cluster.breaks = 2
    store.get(f"{BUCKET}/vision/broken", tmp_path / "y")
    assert (tmp_path / "y").read_text() == "hello"
    cluster.breaks = 2
    assert (found := store.stat(f"{BUCKET}/vision/broken")) and found.size == 5
    cluster.breaks = 2
    assert store.list(f"{BUCKET}/vision")["broken"] == 5
    cluster.breaks = 9
    with pytest.raises(TrainyardError, match="the connection to the pod broke"):
        store.get(f"{BUCKET}/vision/broken", tmp_path / "z")
    assert sorted(os.listdir(tmp_path)) == ["values.yaml", "x", "y"]


def test_a_store_that_is_away_is_asked_again(
    cluster: Cluster, store: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "x").write_text("hello")
    store.put(tmp_path / "x", f"{BUCKET}/vision/away")
    cluster.away = 1
    assert (found := store.stat(f"{BUCKET}/vision/away")) and found.size == 5
    monkeypatch.setattr("trainyard.training.transfer.store.AGAIN", 1)
    cluster.away = 1
    with pytest.raises(transfer.StoreUnavailableError, match="does not answer for s3://runs/vision/away") as error:
        store.get(f"{BUCKET}/vision/away", tmp_path / "y")
    assert transfer.is_retryable(error.value)


def test_what_the_store_refuses_is_one_sentence_and_asked_once(cluster: Cluster, store: Any, tmp_path: Path) -> None:
    with pytest.raises(TrainyardError, match=r"^the object store refuses s3://runs/none: NoSuchKey") as error:
        store.get(f"{BUCKET}/none", tmp_path / "y")
    assert not transfer.is_retryable(error.value)
    assert cluster.ran.count("get") == 1
    assert not (tmp_path / "y").exists()


@pytest.mark.parametrize("ending", [KeyboardInterrupt, TrainyardError("no")])
def test_the_pod_goes_whatever_ends_the_work(cluster: Cluster, team_config: TeamConfig, ending: Any) -> None:
    with pytest.raises((KeyboardInterrupt, TrainyardError)), transfer.open_store(cluster, team_config):  # type: ignore[arg-type]
        assert len(cluster.jobs) == 1
        raise ending
    assert cluster.jobs == []


def test_a_pod_that_is_refused_or_can_not_start_is_said_at_once(cluster: Cluster, team_config: TeamConfig) -> None:
    cluster.pods = []
    cluster.events = [{"reason": "FailedCreate", "message": "exceeded quota: team"}]
    with (
        pytest.raises(TrainyardError, match="did not start: FailedCreate: exceeded quota: team"),
        transfer.open_store(cluster, team_config),
    ):  # type: ignore[arg-type]
        pass
    waiting = {"waiting": {"reason": "ImagePullBackOff", "message": "no such image"}}
    cluster.pods = [{"metadata": {"name": "x"}, "status": {"containerStatuses": [{"state": waiting}]}}]
    with (
        pytest.raises(TrainyardError, match="ImagePullBackOff: no such image"),
        transfer.open_store(cluster, team_config),
    ):  # type: ignore[arg-type]
        pass
    assert cluster.jobs == []


def test_a_pod_that_does_not_come_in_time_is_said(cluster: Cluster, team_config: TeamConfig, monkeypatch: Any) -> None:
    monkeypatch.setattr(pod, "START_S", 0.5)
    full = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "0/3 nodes are available"}
    cluster.pods = [{"metadata": {"name": "x"}, "status": {"phase": "Pending", "conditions": [full]}}]
    with (
        pytest.raises(TrainyardError, match="Unschedulable: 0/3 nodes are available"),
        transfer.open_store(cluster, team_config),
    ):  # type: ignore[arg-type]
        pass


def test_the_pod_waits_while_it_is_used_and_ends_by_itself() -> None:
    command = [sys.executable, "-m", "trainyard_agent", "objects", "idle", "--seconds=1"]
    unshared = ["unshare", "--pid", "--fork", "--mount-proc", *command]
    if os.geteuid():
        pytest.skip("a process space of its own needs root")
    env = {"PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT / "scripts")}
    assert subprocess.run(unshared, env=env, timeout=30, check=False).returncode == 0
