"""Series of mock GPUs: the mock's state, its files, and the container to which kubelet assigned a GPU."""

import json
import re
import shutil
from pathlib import Path
from typing import Any

import pytest

from trainyard.errors import UsageError
from trainyard_agent.exporter import mock_dcgm
from trainyard_dev.gpu import mock
from trainyard_dev.gpu.mock import MockGpuSpec
from trainyard_dev.gpu.uuids import gpu_uuid

NODE = "gpu-1"
SAMPLE = re.compile(r"^(\w+)\{(.*)\} (\d+)$")
pytestmark = pytest.mark.skipif(not shutil.which("gcc"), reason="gcc is not installed")


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return mock.prepare_node(tmp_path / "root", NODE, MockGpuSpec(count=2, memory_mib=1000))


class Pods:
    """An API server that knows the pods of one node."""

    def __init__(self, *pods: tuple[str, str, str, str]) -> None:
        self.asked: list[Any] = []
        self.items = [
            {"metadata": {"uid": uid, "namespace": namespace, "name": name}, "status": {"phase": phase}}
            for uid, namespace, name, phase in pods
        ]

    def get(self, path: str, query: dict[str, str]) -> dict[str, Any]:
        self.asked.append((path, query))
        return {"items": self.items}


def read(text: str) -> dict[str, dict[str, tuple[int, dict[str, str]]]]:
    """Series -> GPU -> (value, labels)."""
    found: dict[str, dict[str, tuple[int, dict[str, str]]]] = {}
    for line in text.splitlines():
        if match := SAMPLE.match(line):
            labels = dict(re.findall(r'(\w+)="([^"]*)"', match[2]))
            found.setdefault(match[1], {})[labels["gpu"]] = (int(match[3]), labels)
    return found


def looked(root: Path, devices: Path, *pods: tuple[str, str, str, str]) -> dict[str, Any]:
    return read(mock_dcgm.look(Pods(*pods), NODE, root, devices))  # type: ignore[arg-type]


def noted(devices: Path, *entries: tuple[str, str, list[str]]) -> None:
    made = [{"PodUID": uid, "ContainerName": container, "ResourceName": "nvidia.com/gpu", "DeviceIDs": {"0": ids}}
            for uid, container, ids in entries]  # fmt: skip
    (devices / mock_dcgm.CHECKPOINT).write_text(json.dumps({"Data": {"PodDeviceEntries": made}, "Checksum": 1}))


def test_idle_gpus_that_nobody_has(root: Path, tmp_path: Path) -> None:
    found = looked(root, tmp_path)
    assert set(found) == set(mock_dcgm.HELP)
    value, labels = found["DCGM_FI_DEV_FB_FREE"]["1"]
    assert value == 1000
    assert labels == {
        "gpu": "1",
        "UUID": gpu_uuid(NODE, 1),
        "device": "nvidia1",
        "modelName": "NVIDIA A100-SXM4-40GB",
        "Hostname": NODE,
    }
    assert {value for value, _ in found["DCGM_FI_DEV_GPU_UTIL"].values()} == {0}


def test_load_and_faults_are_shown(root: Path, tmp_path: Path) -> None:
    mock.work(root, 1, 80, 600)
    mock.work(root, 1, 50, 700)
    mock.inject_xid(root, 0, 79)
    with (root / mock.LOAD).open("a") as file:
        file.write("load x 1 1\nload 9 1 1\nload 0 99 99")  # nonsense, no such GPU, still being written
    found = looked(root, tmp_path)
    assert found["DCGM_FI_DEV_GPU_UTIL"]["1"][0] == 50 and found["DCGM_FI_DEV_GPU_UTIL"]["0"][0] == 0
    assert (found["DCGM_FI_DEV_FB_USED"]["1"][0], found["DCGM_FI_DEV_FB_FREE"]["1"][0]) == (700, 300)
    assert [found["DCGM_FI_DEV_XID_ERRORS"][gpu][0] for gpu in "01"] == [79, 0]
    assert found["DCGM_FI_DEV_POWER_USAGE"]["1"][0] > found["DCGM_FI_DEV_POWER_USAGE"]["0"][0]
    assert found["DCGM_FI_DEV_GPU_TEMP"]["1"][0] > found["DCGM_FI_DEV_GPU_TEMP"]["0"][0]
    with pytest.raises(UsageError, match="0 to 100 percent"):
        mock.work(root, 0, 101, 0)


def test_a_lost_gpu_has_no_series(root: Path, tmp_path: Path) -> None:
    mock.lose(root, 0)
    assert {gpu for series in looked(root, tmp_path).values() for gpu in series} == {"1"}


def test_whose_a_gpu_is(root: Path, tmp_path: Path) -> None:
    first, second = gpu_uuid(NODE, 0), gpu_uuid(NODE, 1)
    noted(tmp_path, ("u1", "main", [first]), ("gone", "main", [second]), ("u2", "worker", [f"{second}::0"]))
    found = looked(root, tmp_path, ("u1", "vision", "train-0", "Succeeded"), ("u2", "speech", "listen-0", "Running"))
    series = found["DCGM_FI_DEV_GPU_UTIL"]
    assert "pod" not in series["0"][1], "its pod has ended"
    assert {key: series["1"][1][key] for key in ("namespace", "pod", "container")} == {
        "namespace": "speech", "pod": "listen-0", "container": "worker",
    }  # fmt: skip


def test_a_node_without_the_mock_has_no_series(tmp_path: Path) -> None:
    assert looked(tmp_path, tmp_path) == {}
