"""The description of mock GPUs, the folder made from it, and the choice between mock and real."""

import re
import stat
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from trainyard.errors import TrainyardError, UsageError
from trainyard_dev.gpu import detect, mock, uuids
from trainyard_dev.gpu.mock import MockGpuSpec

REAL = detect.RealGpus(2, "NVIDIA H100", 81559, "570.1", ("GPU-a", "GPU-b"), "nvidia-smi")


@pytest.mark.parametrize("count", [0, 17, -1])
def test_a_count_that_no_node_has_is_refused_by_name(count: int) -> None:
    with pytest.raises(UsageError, match=r"^number of mock GPUs must"):
        MockGpuSpec(count=count)


@pytest.mark.parametrize("count", [1, 2, 3, 16])
def test_default_topology_fits_every_count(count: int) -> None:
    assert f"count = {count}\n" in MockGpuSpec(count=count).conf("n")


def test_uuids_are_well_formed_stable_and_differ_by_node() -> None:
    every = uuids.node_uuids("trainyard-worker", 16) + uuids.node_uuids("trainyard-worker2", 16)
    assert len(set(every)) == 32
    form = re.compile(r"GPU-[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}")
    assert all(form.fullmatch(uuid) for uuid in every)
    assert uuids.gpu_uuid("trainyard-worker", 0) == "GPU-06dae206-7b3e-4cb7-ac30-7f626a2eae31"


@pytest.fixture
def node(tmp_path: Path) -> Path:
    library = tmp_path / "library"
    library.write_bytes(b"\x7fELF")
    return mock.prepare_node(tmp_path / "node", "worker", MockGpuSpec(), library=library)


def test_driver_root_is_readable_for_everybody(node: Path) -> None:
    for path in [node, *node.rglob("*")]:
        wanted = stat.S_IROTH | (stat.S_IXOTH if path.is_dir() else 0)
        assert path.stat().st_mode & wanted == wanted, path
    assert (node / "usr/lib/x86_64-linux-gnu/libnvidia-ml.so").resolve().name == "libnvidia-ml.so.550.163.01"
    assert (node / "etc/fault").read_text() == ""
    assert "node = worker\n" in (node / "etc/gpu.conf").read_text()


def test_preparing_again_leaves_no_fault_and_no_rubbish(node: Path) -> None:
    before = sorted(node.rglob("*"))
    mock.lose(node, 1)
    mock.prepare_node(node, "worker", MockGpuSpec(count=2), library=node.parent / "library")
    assert (node / "etc/fault").read_text() == ""
    assert sorted(node.rglob("*")) == before


def test_faults_are_lines_and_heal_removes_them(node: Path) -> None:
    mock.inject_xid(node, 2, 79)
    mock.lose(node, 1)
    mock.inject_xid(node, 2, 79)
    lines = (node / "etc/fault").read_text().splitlines()
    assert [line.split()[:3] for line in lines] == [["xid", "2", "79"], ["lost", "1"], ["xid", "2", "79"]]
    assert len(set(lines)) == 3
    mock.heal(node, 2)
    assert (node / "etc/fault").read_text() == "lost 1\n"
    mock.heal(node)
    assert (node / "etc/fault").read_text() == ""


def test_faults_need_a_driver_root_and_a_gpu(tmp_path: Path, node: Path) -> None:
    with pytest.raises(TrainyardError, match="not a driver root"):
        mock.lose(tmp_path / "nowhere", 0)
    with pytest.raises(UsageError, match="no mock GPU 16"):
        mock.lose(node, 16)
    with pytest.raises(UsageError, match="Xid"):
        mock.inject_xid(node, 0, 0)


def test_missing_compiler_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(TrainyardError, match=r"gcc is required .*apt-get install gcc"):
        mock.build_library(tmp_path / "libnvidia-ml.so.1")
    assert not (tmp_path / "libnvidia-ml.so.1").exists()


def test_device_commands_make_every_file_and_may_run_twice(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="count"):
        mock.device_commands(0)
    commands = mock.device_commands(4)
    assert len(commands) == 5
    text = " ".join(command[2] for command in commands)
    assert "mknod /dev/nvidia3 c 195 3" in text
    assert "mknod /dev/nvidiactl c 195 255" in text
    # The same shell text in a folder of its own, with a mknod and a chmod that only note their arguments.
    tools = tmp_path / "bin"
    tools.mkdir()
    for name in ("mknod", "chmod"):
        (tools / name).write_text(f'#!/bin/sh\necho {name} "$@" >> {tmp_path}/calls\n')
        (tools / name).chmod(0o755)
    for command in commands:
        moved = [part.replace("/dev/", f"{tmp_path}/") for part in command]
        subprocess.run(moved, check=True, env={"PATH": f"{tools}:/usr/bin:/bin"})
    calls = (tmp_path / "calls").read_text()
    assert calls.count("mknod") == calls.count("chmod 0666") == 5


def test_choice_without_a_gpu() -> None:
    assert detect.choose("auto", look=False).kind == "mock"
    assert detect.choose("mock", look=False).kind == "mock"
    with pytest.raises(TrainyardError, match=r"GPU=real .*no NVIDIA GPU.*GPU=mock"):
        detect.choose("real", look=False)


def test_real_gpus_are_used_only_when_asked_for() -> None:
    chosen = detect.choose("real", real=REAL, look=False)
    assert (chosen.kind, chosen.real) == ("real", REAL)
    assert "2 x NVIDIA H100" in chosen.reason
    for kind, why in (("mock", "GPU=mock is set"), ("auto", "GPU=real is not set")):
        mocked = detect.choose(kind, real=REAL, look=False)
        assert (mocked.kind, mocked.uuids) == ("mock", ())
        assert f"{why}; this machine's GPUs stay unused (2 x NVIDIA H100" in mocked.reason


def test_unknown_choice() -> None:
    with pytest.raises(UsageError, match="auto, mock, real"):
        detect.choose("fake", look=False)


def test_nvidia_smi_is_read(tmp_path: Path, program: Callable[[str, str], Path]) -> None:
    rows = ["NVIDIA H200, 143771, 570.86.15, GPU-1", "NVIDIA H200, 143770, 570.86.15, GPU-2"]
    program("nvidia-smi", "\n".join(f"echo '{row}'" for row in rows))
    found = detect.find_real(tmp_path / "no-proc")
    assert found == detect.RealGpus(2, "NVIDIA H200", 143770, "570.86.15", ("GPU-1", "GPU-2"), "nvidia-smi")


@pytest.mark.parametrize("script", ["echo 'NVIDIA-SMI has failed'; exit 9", "echo 'No devices were found'", "exit 0"])
def test_broken_driver_is_no_gpu(tmp_path: Path, program: Callable[[str, str], Path], script: str) -> None:
    program("nvidia-smi", script)
    assert detect.find_real(tmp_path / "no-proc") is None


def test_proc_is_read_where_the_tool_is_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    gpu = tmp_path / "proc/gpus/0000:07:00.0"
    gpu.mkdir(parents=True)
    (gpu / "information").write_text("Model: \t\t NVIDIA A100-SXM4-40GB\nIRQ:   \t\t 1\nGPU UUID: \t GPU-1\n")
    (tmp_path / "proc/version").write_text("NVRM version: NVIDIA UNIX x86_64 Kernel Module  550.54.15  Tue Mar 5\n")
    found = detect.find_real(tmp_path / "proc")
    source = str(tmp_path / "proc")
    assert found == detect.RealGpus(1, "NVIDIA A100-SXM4-40GB", None, "550.54.15", ("GPU-1",), source)
