"""Clusters that start and stop; a failed or interrupted start leaves nothing."""

import signal
import threading
import time
from pathlib import Path

import pytest
import yaml
from pretended_machine import UP, Call, Machine

from trainyard.errors import TrainyardError
from trainyard_dev import engine as engines
from trainyard_dev.cluster import lifecycle
from trainyard_dev.gpu import cdi, detect
from trainyard_dev.images import registry, source


def send(sent: signal.Signals, sign: Path) -> threading.Thread:
    """Sends this process a signal as soon as the file `sign` is there."""

    def wait() -> None:
        deadline = time.monotonic() + 20
        while not sign.exists() and time.monotonic() < deadline:
            time.sleep(0.01)
        # To the thread that waits for kind, as the kernel does with one from outside; os.kill may give it to this one.
        signal.pthread_kill(threading.main_thread().ident or 0, sent)

    thread = threading.Thread(target=wait)
    thread.start()
    return thread


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
        ("full", "[2/8] images of the cluster itself", "no space left on device"),
        ("kind-fails", "[5/8] kind create cluster", "ERROR: failed to init node with kubeadm"),
        ("no-exec", "[6/8] GPU devices", "mknod: Operation not permitted"),
        ("not-ready", "[8/8] nodes ready", "timed out waiting for the condition on nodes/x"),
    ],
)
def test_a_failed_start_leaves_nothing(machine: Machine, trainyard: Call, file: str, step: str, says: str) -> None:
    (machine.fake / file).touch()
    ended = trainyard(*UP, "--name", "lab")
    assert ended.code == 1
    assert says in ended.error()
    last = [line for line in ended.out.splitlines() if "[" in line][-1]
    assert step in last
    assert "FAILED after" in last
    assert "removing the incomplete cluster" in ended.out
    assert machine.state() == []


def test_a_clean_up_that_fails_does_not_hide_the_first_error(machine: Machine, monkeypatch: pytest.MonkeyPatch,
                                                             capsys: pytest.CaptureFixture[str]) -> None:  # fmt: skip
    def broken(*args: object, **kwargs: object) -> bool:
        raise TrainyardError("podman is gone")

    (machine.fake / "kind-fails").touch()
    monkeypatch.setattr(lifecycle, "down", broken)
    with pytest.raises(TrainyardError, match="failed to init node with kubeadm"):
        lifecycle.up(engines.Engine("podman"), lifecycle.Options("lab", source.Source("build", "x")))
    assert "could not remove it: podman is gone." in capsys.readouterr().out


@pytest.mark.parametrize("sent", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_start_leaves_nothing(machine: Machine, trainyard: Call, sent: signal.Signals) -> None:
    (machine.fake / "kind-hangs").touch()
    thread = send(sent, machine.fake / "hanging")
    began = time.monotonic()
    ended = trainyard(*UP, "--name", "lab")
    thread.join()
    assert ended.code == 130
    assert ended.error() == "interrupted."
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
    assert ended.error() == "interrupted."
    assert machine.state() == []


def test_a_registry_that_never_answers(machine: Machine, trainyard: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAKE_PORT", "1")
    monkeypatch.setattr(registry._wait, "__defaults__", (0.1,))
    assert "the registry does not answer at 127.0.0.1:1" in trainyard(*UP).error()
    assert machine.state() == []


def test_one_node_has_all_real_gpus(machine: Machine, trainyard: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    found = detect.RealGpus(2, "NVIDIA H200", 143771, "570.86.15", ("GPU-1", "GPU-2"), "nvidia-smi")
    monkeypatch.setattr(detect, "find_real", lambda: found)
    monkeypatch.setattr(cdi, "files", lambda: {"/there": Path("/usr/lib64/libcuda.so.570.86.15")})
    assert trainyard(*UP[:-1], "real", "--name", "lab").code == 0
    made = yaml.safe_load((machine.cache / "clusters/lab/kind.yaml").read_text())["nodes"]
    assert [node.get("labels", {}).get("trainyard.io/pool") for node in made] == [None, "gpu", "cpu", "cpu"]
    mounted = [any(mount["containerPath"] == "/there" for mount in node["extraMounts"]) for node in made]
    assert mounted == [False, True, False, False]
    assert [call for call in machine.calls() if "mknod" in call or "ldconfig" in call] == ["exec lab-worker ldconfig"]
    options = lifecycle.Options("lab", source.Source("build", "x"), "real", uuids=found.uuids)
    assert lifecycle.gpus_due(options) == {"lab-worker": 2}
