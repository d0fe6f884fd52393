"""Clusters: what is refused before anything starts."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from pretended_machine import UP, Call, Machine, Usage

from trainyard.errors import TrainyardError
from trainyard_dev.cluster import lifecycle, nodes
from trainyard_dev.engine import Engine
from trainyard_dev.gpu import detect


def test_a_bad_cluster_name(machine: Machine, trainyard: Call) -> None:
    ended = trainyard(*UP, "--name", "Bad_Name")
    assert ended.code == 2
    assert ended.error() == "invalid cluster name: `Bad_Name`. use 1 to 40 lower-case letters, digits, inner hyphens."
    assert machine.state() == []


def test_a_taken_cluster_name(machine: Machine, trainyard: Call) -> None:
    (machine.fake / "containers/lab-control-plane").write_text("lab")
    ended = trainyard(*UP, "--name", "lab")
    assert ended.error() == (
        "a cluster named lab exists already. "
        "remove it with `trainyard cluster down --name lab`, or choose another name."
    )
    assert machine.state() == ["lab-control-plane"]  # the other one is left alone


def test_zero_gpus(machine: Machine, trainyard: Call) -> None:
    ended = trainyard(*UP, "--gpus", "0")
    assert ended.code == 2
    assert "count" in ended.error()
    assert machine.state() == []


def test_no_root(machine: Machine, trainyard: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    assert trainyard(*UP).error() == "kind's nodes require root on this machine. run the command as root (sudo)."
    assert machine.state() == []


def test_a_full_disk(machine: Machine, trainyard: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lifecycle.shutil, "disk_usage", lambda path: Usage(10**12, 10**12, 2 * 10**9))
    error = trainyard(*UP).error()
    assert error.startswith(f"{machine.cache}: only 2.0 GB are free; a cluster needs ")
    assert error.endswith("free some space, or set TRAINYARD_CACHE to another disk.")
    assert machine.state() == []


def test_no_fuse(machine: Machine, trainyard: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    there = Path.exists
    monkeypatch.setattr(nodes, "kernel_has_nfs", lambda: False)
    monkeypatch.setattr(Path, "exists", lambda self: str(self) != "/dev/fuse" and there(self))
    assert trainyard(*UP).error() == "neither the kernel nor FUSE can mount NFS: /dev/fuse is missing. modprobe fuse."
    assert machine.state() == []


def test_no_fuse_is_no_matter_where_the_kernel_mounts_nfs(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    there = Path.exists
    monkeypatch.setattr(Path, "exists", lambda self: str(self) != "/dev/fuse" and there(self))
    lifecycle._check_machine(Engine("podman"))


def test_a_dead_docker_socket(trainyard: Call, cache: Path, program: Callable[[str, str], Path]) -> None:
    dead = 'echo "Cannot connect to the Docker daemon at unix:///var/run/docker.sock" >&2; exit 1'
    program("docker", f'[ "$1" != -v ] || {{ echo "Docker version 27.0.3"; exit; }}; {dead}')
    error = trainyard("cluster", "up", "--provider", "docker").error()
    assert error.startswith("no container engine: docker does not answer (Cannot connect to the Docker daemon at unix:")
    assert "start the Docker service, or install podman: `apt-get install" in error


@pytest.mark.parametrize("verb", ["down", "status"])
def test_no_such_cluster(machine: Machine, trainyard: Call, verb: str) -> None:
    assert trainyard("cluster", verb, "--provider", "podman", "--name", "lab").error().startswith(
        "no cluster named lab. "
    )  # fmt: skip


def test_a_docker_that_builds_nothing(machine: Machine, monkeypatch: pytest.MonkeyPatch,
                                      program: Callable[[str, str], Path]) -> None:  # fmt: skip
    program("docker", '[ "$1" != buildx ] || exit 1; [ "$1" != version ] || echo 28.1.0')
    with pytest.raises(TrainyardError, match=r"^docker 28\.1\.0 cannot build images without buildx"):
        lifecycle._check_machine(Engine("docker"))


def test_mock_gpus_may_be_asked_for_where_real_ones_are(
    machine: Machine, trainyard: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(detect, "find_real", lambda: detect.RealGpus(1, "H100", 1, "5", ("GPU-a",), "nvidia-smi"))
    ended = trainyard(*UP, "--name", "lab")
    assert (ended.code, ended.err) == (0, "")
    assert "GPUs: mock" in ended.out
