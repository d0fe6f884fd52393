"""Clusters: kind's configuration, what is refused beforehand, and that a failed or interrupted start leaves nothing."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections import namedtuple
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import yaml

from trainyard import engine as engines
from trainyard.cluster import config, lifecycle, nodes, source
from trainyard.cluster.nodes import Mount
from trainyard.errors import TrainyardError, UsageError
from trainyard.gpu import detect, mock
from trainyard.images import registry

Call = Callable[..., Any]
Usage = namedtuple("Usage", "total used free")

# Podman that keeps containers as files of $FAKE/containers; a file of that folder holds the cluster's name.
PODMAN = r"""
echo "$*" >> "$FAKE/calls"
case "$1 $2" in
"info "*) echo 5.0;;
"ps "*) want=$(echo "$*" | sed -n 's/.*kind.cluster=\([^ ]*\).*/\1/p')
  for f in "$FAKE"/containers/*; do [ -e "$f" ] || continue
    [ -z "$want" ] || [ "$(cat "$f")" = "$want" ] || continue; basename "$f"; done;;
"inspect "*) [ -e "$FAKE/registry" ] || exit 1; echo running;;
"run "*) touch "$FAKE/registry";;
"port "*) echo "127.0.0.1:$FAKE_PORT";;
"push "*) [ ! -e "$FAKE/full" ] || { echo "Error: writing blob: no space left on device" >&2; exit 125; };;
"create "*) echo c0ffee;;
"cp "*) mkdir -p "$3";;
"rm "*) for name; do rm -f "$FAKE/containers/$name"
  [ "$name" != trainyard-registry ] || rm -f "$FAKE/registry"; done;;
"exec "*) [ ! -e "$FAKE/no-exec" ] || { echo "mknod: Operation not permitted" >&2; exit 1; };;
esac
"""
KIND = r"""
echo "kind $*" >> "$FAKE/calls"
case "$1" in
create) for node in control-plane worker worker2 worker3; do echo "$4" > "$FAKE/containers/$4-$node"; done
  [ ! -e "$FAKE/kind-hangs" ] || { touch "$FAKE/hanging"; exec sleep 60; }
  [ ! -e "$FAKE/kind-fails" ] || { printf 'Creating\nERROR: failed to init node with kubeadm\n' >&2; exit 1; };;
delete) [ ! -e "$FAKE/delete-slow" ] || { touch "$FAKE/deleting"; sleep 0.5; }
  [ ! -e "$FAKE/delete-fails" ] || exit 1; rm -f "$FAKE/containers/$4"-*;;
esac
"""
KUBECTL = r"""
echo "kubectl $*" >> "$FAKE/calls"
[ ! -e "$FAKE/not-ready" ] || case "$*" in *" wait "*)
  echo "timed out waiting for the condition on nodes/x" >&2; exit 1;; esac
"""


class Machine(SimpleNamespace):
    """The pretended machine: `fake` is the state of its programs."""

    fake: Path
    cache: Path

    def state(self) -> list[str]:
        """Containers and folders of clusters that are there."""
        folder = self.cache / "clusters"
        left = [f"folder {p.name}" for p in folder.iterdir()] if folder.exists() else []
        left += ["registry"] if (self.fake / "registry").exists() else []
        return sorted(p.name for p in (self.fake / "containers").iterdir()) + left

    def calls(self) -> list[str]:
        return (self.fake / "calls").read_text().splitlines()


@pytest.fixture
def machine(
    tmp_path: Path,
    cache: Path,
    program: Callable[[str, str], Path],
    site: SimpleNamespace,
    monkeypatch: pytest.MonkeyPatch,
) -> Machine:
    """A machine on which podman, kind and kubectl pretend, as root, with room, /dev/fuse and no GPU."""
    fake = tmp_path / "fake"
    (fake / "containers").mkdir(parents=True)
    library = tmp_path / "library"
    library.write_text("nvml")
    monkeypatch.setenv("FAKE", str(fake))
    monkeypatch.setenv("FAKE_PORT", site.url.split(":")[2].split("/")[0])
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    tools = {"podman": program("podman", PODMAN), "kind": program("kind", KIND), "kubectl": program("kubectl", KUBECTL)}
    monkeypatch.setattr("trainyard.tools.binary", lambda name: tools[name])
    monkeypatch.setattr(lifecycle, "_raise_inotify", lambda: None)
    monkeypatch.setattr(mock, "cached_library", lambda: library)
    monkeypatch.setattr(detect, "find_real", lambda: None)
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setattr(lifecycle.shutil, "disk_usage", lambda path: Usage(10**12, 0, 10**12))
    monkeypatch.setattr(nodes, "kernel_has_nfs", lambda: True)
    return Machine(fake=fake, cache=cache)


UP = ("cluster", "up", "--provider", "podman", "--images", "build", "--gpu", "mock")


# kind's configuration


def test_nodes_are_named_as_kind_names_them() -> None:
    made = config.nodes("lab")
    assert [n.name for n in made] == ["lab-control-plane", "lab-worker", "lab-worker2", "lab-worker3"]
    assert [n.has_gpus for n in made] == [False, True, True, False]
    assert made[3].labels == {"trainyard.io/pool": "cpu"}


def test_rendered_configuration() -> None:
    mounts = {"lab-worker": [Mount(Path("/here"), "/there"), Mount(Path("/a"), "/b", read_only=False)]}
    made = yaml.safe_load(config.render("docker.io/kindest/node:v1.2.3", mounts, "lab"))
    assert made["kind"] == "Cluster"
    assert made["networking"]["disableDefaultCNI"] is True
    assert {n["image"] for n in made["nodes"]} == {"docker.io/kindest/node:v1.2.3"}
    assert [n["role"] for n in made["nodes"]] == ["control-plane", "worker", "worker", "worker"]
    assert [n.get("labels", {}).get("trainyard.io/pool") for n in made["nodes"]] == [None, "gpu", "gpu", "cpu"]
    assert made["nodes"][1]["extraMounts"] == [
        {"hostPath": "/here", "containerPath": "/there", "readOnly": True},
        {"hostPath": "/a", "containerPath": "/b", "readOnly": False},
    ]
    assert made["nodes"][2]["extraMounts"] == []
    assert 'config_path = "/etc/containerd/certs.d"' in "".join(made["containerdConfigPatches"])


@pytest.mark.parametrize("name", ["trainyard", "a", "a-1", "0", "x" * 40])
def test_good_names(name: str) -> None:
    assert config.check_name(name) == name


@pytest.mark.parametrize("name", ["", "-a", "a-", "A", "a_b", "a.b", "a b", "x" * 41, "../up", "a\n", "ä"])
def test_bad_names(name: str) -> None:
    with pytest.raises(UsageError, match="is no cluster name"):
        config.check_name(name)


@pytest.mark.parametrize(
    ("listed", "has"),
    [("nodev\tproc\n\text4\n", False), ("nodev\tnfs\n", True), ("nodev\tnfs4\n\n", True), ("nodev\tnfsd\n", False)],
)
def test_whether_the_kernel_mounts_nfs(listed: str, has: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "filesystems").write_text(listed)
    monkeypatch.setattr(Path, "is_dir", lambda self: False)  # no module folder
    assert nodes.kernel_has_nfs(tmp_path / "filesystems") is has


# what is refused before anything starts


def test_a_bad_cluster_name(machine: Machine, trainyard: Call) -> None:
    ended = trainyard(*UP, "--name", "Bad_Name")
    assert ended.code == 2
    assert ended.fault() == "`Bad_Name` is no cluster name. use 1 to 40 lower-case letters, digits and inner hyphens."
    assert machine.state() == []


def test_a_taken_cluster_name(machine: Machine, trainyard: Call) -> None:
    (machine.fake / "containers/lab-control-plane").write_text("lab")
    ended = trainyard(*UP, "--name", "lab")
    assert ended.fault() == (
        "a cluster named lab exists already. "
        "remove it with `trainyard cluster down --name lab`, or choose another name."
    )
    assert machine.state() == ["lab-control-plane"]  # the other one is left alone


def test_zero_gpus(machine: Machine, trainyard: Call) -> None:
    ended = trainyard(*UP, "--gpus", "0")
    assert ended.code == 2
    assert "count" in ended.fault()
    assert machine.state() == []


def test_no_root(machine: Machine, trainyard: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    assert trainyard(*UP).fault() == "kind's nodes need root here. run the command as root (sudo)."
    assert machine.state() == []


def test_a_full_disk(machine: Machine, trainyard: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lifecycle.shutil, "disk_usage", lambda path: Usage(10**12, 10**12, 2 * 10**9))
    fault = trainyard(*UP).fault()
    assert fault.startswith(f"{machine.cache}: only 2.0 GB are free, a cluster needs ")
    assert fault.endswith("free some space or set TRAINYARD_CACHE to another disk.")
    assert machine.state() == []


def test_no_fuse(machine: Machine, trainyard: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    there = Path.exists
    monkeypatch.setattr(nodes, "kernel_has_nfs", lambda: False)
    monkeypatch.setattr(Path, "exists", lambda self: str(self) != "/dev/fuse" and there(self))
    assert trainyard(*UP).fault() == "neither the kernel nor FUSE can mount NFS: /dev/fuse is missing. modprobe fuse."
    assert machine.state() == []


def test_no_fuse_is_no_matter_where_the_kernel_mounts_nfs(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    there = Path.exists
    monkeypatch.setattr(Path, "exists", lambda self: str(self) != "/dev/fuse" and there(self))
    lifecycle._check_machine()


def test_a_dead_docker_socket(trainyard: Call, cache: Path, program: Callable[[str, str], Path]) -> None:
    program("docker", 'echo "Cannot connect to the Docker daemon at unix:///var/run/docker.sock" >&2; exit 1')
    fault = trainyard("cluster", "up", "--provider", "docker").fault()
    assert fault.startswith("no container engine: docker does not answer (Cannot connect to the Docker daemon at unix:")
    assert "start the Docker service, or install podman: `apt-get install" in fault


@pytest.mark.parametrize("verb", ["down", "status"])
def test_no_such_cluster(machine: Machine, trainyard: Call, verb: str) -> None:
    assert trainyard("cluster", verb, "--provider", "podman", "--name", "lab").fault().startswith(
        "there is no cluster named lab. "
    )  # fmt: skip


def test_real_gpus_are_not_mocked_over(machine: Machine, trainyard: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(detect, "find_real", lambda: detect.RealGpus(1, "H100", 1, "5", ("GPU-a",), "nvidia-smi"))
    assert "GPU=mock was asked for, but this machine has GPUs" in trainyard(*UP).fault()
    assert machine.state() == []


# starting and stopping


def test_a_cluster_comes_up_and_goes_down(machine: Machine, trainyard: Call) -> None:
    ended = trainyard(*UP, "--name", "lab", "--gpus", "2")
    assert (ended.code, ended.err) == (0, "")
    assert "Cluster lab, images: build (asked for), GPUs: mock" in ended.out
    assert "[8/8] nodes ready … " in ended.out
    assert f"export KUBECONFIG={machine.cache}/clusters/lab/kubeconfig" in ended.out
    assert machine.state() == [
        "lab-control-plane", "lab-worker", "lab-worker2", "lab-worker3", "folder lab", "registry",
    ]  # fmt: skip
    made = yaml.safe_load((machine.cache / "clusters/lab/kind.yaml").read_text())
    gpu_mounts = [[m["containerPath"] for m in n["extraMounts"] if "gpu" in m["containerPath"]] for n in made["nodes"]]
    assert gpu_mounts == [[], ["/opt/trainyard/mock-gpu"], ["/opt/trainyard/mock-gpu"], []]
    devices = [call for call in machine.calls() if call.startswith("exec ") and "mknod" in call]
    assert [call.split()[1] for call in devices] == ["lab-worker", "lab-worker2"]
    ended = trainyard("cluster", "down", "--provider", "podman", "--name", "lab")
    assert (ended.code, ended.out) == (0, "cluster lab removed\n")
    assert machine.state() == []
    assert (machine.cache / "registry").is_dir()  # what was pushed stays for the next run


def test_the_registry_outlives_one_of_two_clusters(machine: Machine, trainyard: Call) -> None:
    (machine.fake / "containers/other-control-plane").write_text("other")
    assert trainyard(*UP, "--name", "lab").code == 0
    assert trainyard("cluster", "down", "--provider", "podman", "--name", "lab").code == 0
    assert machine.state() == ["other-control-plane", "registry"]


@pytest.mark.parametrize(
    ("file", "step", "says"),
    [
        ("full", "[3/8] images for the registry", "no space left on device"),
        ("kind-fails", "[5/8] kind create cluster", "ERROR: failed to init node with kubeadm"),
        ("no-exec", "[6/8] GPU devices", "mknod: Operation not permitted"),
        ("not-ready", "[8/8] nodes ready", "timed out waiting for the condition on nodes/x"),
    ],
)
def test_a_failed_start_leaves_nothing(machine: Machine, trainyard: Call, file: str, step: str, says: str) -> None:
    (machine.fake / file).touch()
    ended = trainyard(*UP, "--name", "lab")
    assert ended.code == 1
    assert says in ended.fault()
    last = [line for line in ended.out.splitlines() if "[" in line][-1]
    assert step in last
    assert "FAILED after" in last
    assert "removing the half-made cluster" in ended.out
    assert machine.state() == []


def test_nodes_that_kind_leaves_are_removed_all_the_same(machine: Machine, trainyard: Call) -> None:
    (machine.fake / "kind-fails").touch()
    (machine.fake / "delete-fails").touch()
    assert trainyard(*UP).code == 1
    assert machine.state() == []


def test_a_clean_up_that_fails_does_not_hide_the_first_fault(machine: Machine, monkeypatch: pytest.MonkeyPatch,
                                                             capsys: pytest.CaptureFixture[str]) -> None:  # fmt: skip
    def broken(*args: object, **kwargs: object) -> bool:
        raise TrainyardError("podman is gone")

    (machine.fake / "kind-fails").touch()
    monkeypatch.setattr(lifecycle, "down", broken)
    with pytest.raises(TrainyardError, match="failed to init node with kubeadm"):
        lifecycle.up(engines.Engine("podman"), lifecycle.Options("lab", source.Source("build", "x")))
    assert "it could not be removed: podman is gone." in capsys.readouterr().out


def send(sent: signal.Signals, sign: Path) -> threading.Thread:
    """Sends this process a signal as soon as the file `sign` is there."""

    def wait() -> None:
        deadline = time.monotonic() + 20
        while not sign.exists() and time.monotonic() < deadline:
            time.sleep(0.01)
        os.kill(os.getpid(), sent)

    thread = threading.Thread(target=wait)
    thread.start()
    return thread


@pytest.mark.parametrize("sent", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_start_leaves_nothing(machine: Machine, trainyard: Call, sent: signal.Signals) -> None:
    (machine.fake / "kind-hangs").touch()
    thread = send(sent, machine.fake / "hanging")
    began = time.monotonic()
    ended = trainyard(*UP, "--name", "lab")
    thread.join()
    assert ended.code == 130
    assert ended.fault() == "interrupted."
    assert time.monotonic() - began < 20  # kind itself was stopped
    assert machine.state() == []


@pytest.mark.parametrize("again", [signal.SIGINT, signal.SIGTERM])
def test_a_second_interruption_does_not_stop_the_clean_up(
    machine: Machine, trainyard: Call, again: signal.Signals
) -> None:
    for file in ("kind-hangs", "delete-slow"):
        (machine.fake / file).touch()
    threads = [send(signal.SIGINT, machine.fake / "hanging"), send(again, machine.fake / "deleting")]
    ended = trainyard(*UP, "--name", "lab")
    for thread in threads:
        thread.join()
    assert ended.code == 130
    assert ended.fault() == "interrupted."
    assert machine.state() == []


def test_a_registry_that_never_answers(machine: Machine, trainyard: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAKE_PORT", "1")
    monkeypatch.setattr(registry._wait, "__defaults__", (0.1,))
    assert "the registry does not answer at 127.0.0.1:1" in trainyard(*UP).fault()
    assert machine.state() == []


def test_real_gpus_are_dealt_out_once() -> None:
    """Two nodes never get the same GPU; with one GPU the second node gets none."""
    assert lifecycle.share_gpus(["a", "b", "c"], ["n1", "n2"]) == {"n1": ["a", "c"], "n2": ["b"]}
    assert lifecycle.share_gpus(["a"], ["n1", "n2"]) == {"n1": ["a"], "n2": []}
