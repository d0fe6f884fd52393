"""The mock NVML library, called through ctypes as node preparation and the device plugin call it."""

import ctypes
import os
import re
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from ctypes import byref, c_char, c_int, c_uint, c_ulonglong, c_void_p
from pathlib import Path

import pytest

from trainyard_dev.gpu import mock, uuids
from trainyard_dev.gpu.mock import MockGpuSpec

pytestmark = pytest.mark.skipif(not (shutil.which("gcc") and shutil.which("make")), reason="needs gcc and make")

OK, UNINITIALIZED, INVALID, UNSUPPORTED, NOT_FOUND, TOO_SMALL, NO_DRIVER, TIMEOUT, LOST = 0, 1, 2, 3, 6, 7, 9, 10, 15
VERSION_MISMATCH = 25
XID_EVENT = 8


class Pci(ctypes.Structure):
    _fields_ = [
        ("legacy", c_char * 16), ("domain", c_uint), ("bus", c_uint), ("device", c_uint), ("id", c_uint),
        ("subsystem", c_uint), ("bus_id", c_char * 32),
    ]  # fmt: skip


class Memory(ctypes.Structure):
    _fields_ = [("total", c_ulonglong), ("free", c_ulonglong), ("used", c_ulonglong)]


class Event(ctypes.Structure):
    _fields_ = [("device", c_void_p), ("type", c_ulonglong), ("data", c_ulonglong), ("gi", c_uint), ("ci", c_uint)]


class Node:
    """One prepared node and its own copy of the library."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.lib = ctypes.CDLL(str(root / "usr/lib/x86_64-linux-gnu/libnvidia-ml.so.1"))

    def handle(self, index: int) -> c_void_p:
        device = c_void_p()
        assert self.lib.nvmlDeviceGetHandleByIndex_v2(index, byref(device)) == OK
        return device

    def uuid(self, device: c_void_p) -> str:
        text = ctypes.create_string_buffer(80)
        assert self.lib.nvmlDeviceGetUUID(device, text, 80) == OK
        return text.value.decode()

    def listener(self, *gpus: int) -> c_void_p:
        events = c_void_p()
        assert self.lib.nvmlEventSetCreate(byref(events)) == OK
        for gpu in gpus:
            assert self.lib.nvmlDeviceRegisterEvents(self.handle(gpu), c_ulonglong(XID_EVENT), events) == OK
        return events

    def wait(self, events: c_void_p, timeout_ms: int = 0) -> tuple[int, int] | None:
        """(GPU, Xid) or None on timeout."""
        event = Event()
        result = self.lib.nvmlEventSetWait_v2(events, byref(event), timeout_ms)
        if result == TIMEOUT:
            return None
        assert result == OK
        assert (event.type, event.gi, event.ci) == (XID_EVENT, 0xFFFFFFFF, 0xFFFFFFFF)
        index = c_uint()
        assert self.lib.nvmlDeviceGetIndex(c_void_p(event.device), byref(index)) == OK
        return index.value, event.data


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return mock.build_library(tmp_path_factory.mktemp("library") / mock.LIBRARY)


@pytest.fixture
def make_node(tmp_path: Path, library: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Node]:
    monkeypatch.delenv("TRAINYARD_MOCK_GPU_CONF", raising=False)

    def make(name: str = "worker", **keys: object) -> Node:
        root = mock.prepare_node(tmp_path / name, name, MockGpuSpec(**keys), library=library)  # type: ignore[arg-type]
        node = Node(root)
        assert node.lib.nvmlInit_v2() == OK
        return node

    return make


@pytest.fixture
def node(make_node: Callable[..., Node]) -> Node:
    return make_node()


def test_answers_what_node_preparation_asks(make_node: Callable[..., Node]) -> None:
    node = make_node(model="NVIDIA Pretend", count=3, memory_mib=1234, driver="1.2.3", cuda="11.8", compute="7.5")
    text = ctypes.create_string_buffer(96)
    number, other = c_uint(), c_int()
    assert node.lib.nvmlSystemGetDriverVersion(text, 96) == OK
    assert text.value == b"1.2.3"
    assert node.lib.nvmlSystemGetDriverVersion(text, 5) == TOO_SMALL
    assert node.lib.nvmlSystemGetCudaDriverVersion(byref(other)) == OK
    assert other.value == 11080
    assert node.lib.nvmlDeviceGetCount_v2(byref(number)) == OK
    assert number.value == 3
    assert node.lib.nvmlDeviceGetHandleByIndex_v2(3, byref(c_void_p())) == INVALID
    device = node.handle(2)
    assert node.lib.nvmlDeviceGetName(device, text, 96) == OK
    assert text.value == b"NVIDIA Pretend"
    memory = Memory()
    assert node.lib.nvmlDeviceGetMemoryInfo(device, byref(memory)) == OK
    assert (memory.total, memory.free, memory.used) == (1234 << 20, 1234 << 20, 0)
    assert node.lib.nvmlDeviceGetMinorNumber(device, byref(number)) == OK
    assert number.value == 2
    major, minor = c_int(), c_int()
    assert node.lib.nvmlDeviceGetCudaComputeCapability(device, byref(major), byref(minor)) == OK
    assert (major.value, minor.value) == (7, 5)
    assert node.lib.nvmlDeviceGetMigMode(device, byref(number), byref(c_uint())) == UNSUPPORTED
    pci = Pci()
    assert node.lib.nvmlDeviceGetPciInfo_v3(device, byref(pci)) == OK
    assert pci.bus_id == b"000010DE:09:00.0"
    assert pci.legacy == b"10DE:09:00.0"


def test_memory_is_not_shared_with_the_processor(node: Node) -> None:
    """A plugin that writes CDI specifications asks, from 0.19 on."""
    asked = (c_uint * 2)(8 | 1 << 24, 99)
    assert node.lib.nvmlDeviceGetAddressingMode(node.handle(0), byref(asked)) == OK
    assert asked[1] == 0
    assert node.lib.nvmlDeviceGetAddressingMode(node.handle(0), byref((c_uint * 2)(8, 0))) == VERSION_MISMATCH
    device = node.handle(1)
    mock.lose(node.root, 1)
    assert node.lib.nvmlDeviceGetAddressingMode(device, byref(asked)) == LOST


def test_uuids_are_those_that_python_computes_and_differ_by_node(make_node: Callable[..., Node]) -> None:
    found = {name: [make_node(name).uuid(make_node(name).handle(gpu)) for gpu in range(4)] for name in ("one", "two")}
    assert found == {name: uuids.node_uuids(name, 4) for name in found}
    node = make_node("one")
    device = c_void_p()
    assert node.lib.nvmlDeviceGetHandleByUUID(found["one"][3].encode(), byref(device)) == OK
    assert node.uuid(device) == found["one"][3]
    assert node.lib.nvmlDeviceGetHandleByUUID(found["two"][3].encode(), byref(device)) == NOT_FOUND


def test_nothing_works_before_init_and_after_shutdown(node: Node) -> None:
    device = node.handle(0)
    assert node.lib.nvmlInit_v2() == OK
    assert node.lib.nvmlShutdown() == OK
    assert node.lib.nvmlDeviceGetCount_v2(byref(c_uint())) == OK
    assert node.lib.nvmlShutdown() == OK
    assert node.lib.nvmlDeviceGetCount_v2(byref(c_uint())) == UNINITIALIZED
    assert node.lib.nvmlDeviceGetMemoryInfo(device, byref(Memory())) == UNINITIALIZED
    assert node.lib.nvmlShutdown() == UNINITIALIZED


def test_xid_is_delivered_once_and_in_order(node: Node) -> None:
    events = node.listener(0, 1, 2, 3)
    mock.inject_xid(node.root, 1, 79)
    mock.inject_xid(node.root, 3, 48)
    assert [node.wait(events) for _ in range(3)] == [(1, 79), (3, 48), None]
    mock.inject_xid(node.root, 1, 79)
    assert [node.wait(events) for _ in range(2)] == [(1, 79), None]


def test_xid_after_healing_is_new_even_if_the_file_was_not_read_between(node: Node) -> None:
    events = node.listener(0)
    for _ in range(2):
        mock.inject_xid(node.root, 0, 79)
        assert [node.wait(events) for _ in range(2)] == [(0, 79), None]
        mock.heal(node.root)


def test_plain_equal_lines_count_one_by_one(node: Node) -> None:
    events = node.listener(0)
    fault = node.root / "etc/fault"
    fault.write_text("# a comment\nxid 0 79\nxid 0 79\n")
    assert [node.wait(events) for _ in range(3)] == [(0, 79), (0, 79), None]
    fault.unlink()
    assert node.wait(events) is None
    fault.write_text("xid 0 79")
    assert node.wait(events) is None, "a line without its newline is still being written"
    fault.write_text("xid 0 79\n")
    assert node.wait(events) == (0, 79)


def test_nonsense_in_the_fault_file_hides_no_fault(node: Node) -> None:
    events = node.listener(0)
    lines = ["xid", "xid 9 79", "xid 0 -1", "xid 0 x", "lost", "melted 0", "", "x" * 1000, f"xid 0 79 {'y' * 1000}"]
    (node.root / "etc/fault").write_text("\n".join(lines) + "\n")
    assert [node.wait(events) for _ in range(2)] == [(0, 79), None]


def test_every_listener_gets_its_own_gpus_events(node: Node) -> None:
    first, all_of_them = node.listener(0), node.listener(0, 1, 2, 3)
    mock.inject_xid(node.root, 2, 79)
    assert node.wait(first) is None
    assert node.wait(all_of_them) == (2, 79)
    assert node.wait(node.listener(2)) == (2, 79), "a restarted plugin finds the GPU as broken as before"
    assert node.lib.nvmlEventSetFree(first) == OK


def test_wait_honours_its_timeout_and_wakes_early(node: Node) -> None:
    events = node.listener(0)
    start = time.monotonic()
    assert node.wait(events, 250) is None
    assert 0.25 <= time.monotonic() - start < 5
    timer = threading.Timer(0.3, mock.inject_xid, (node.root, 0, 79))
    timer.start()
    start = time.monotonic()
    assert node.wait(events, 30_000) == (0, 79)
    assert time.monotonic() - start < 10
    timer.join()


def test_read_only_fault_file_is_enough(node: Node) -> None:
    mock.inject_xid(node.root, 0, 79)
    (node.root / "etc/fault").chmod(0o444)
    before = (node.root / "etc/fault").read_text()
    events = node.listener(0)
    assert [node.wait(events) for _ in range(2)] == [(0, 79), None]
    assert (node.root / "etc/fault").read_text() == before


def test_lost_gpu_until_healed(node: Node) -> None:
    held, device, count = node.handle(1), c_void_p(), c_uint()
    uuid = uuids.gpu_uuid("worker", 1)
    mock.lose(node.root, 1)
    assert node.lib.nvmlDeviceGetHandleByIndex_v2(1, byref(device)) == LOST
    assert node.lib.nvmlDeviceGetHandleByUUID(uuid.encode(), byref(device)) == LOST
    assert node.lib.nvmlDeviceGetMemoryInfo(held, byref(Memory())) == LOST
    assert node.lib.nvmlDeviceGetTopologyCommonAncestor(node.handle(0), held, byref(c_int())) == LOST
    assert node.uuid(held) == uuid
    assert node.lib.nvmlDeviceGetCount_v2(byref(count)) == OK
    assert count.value == 4
    mock.heal(node.root, 1)
    assert node.uuid(node.handle(1)) == uuid


def test_topology_is_the_configured_one(make_node: Callable[..., Node]) -> None:
    node = make_node("topology", nvlinks=((0, 1, 2), (0, 3, 1)), pairs=((0, 1, "single"),), default_pair="system")
    device = [node.handle(gpu) for gpu in range(4)]
    level = c_int()

    def distance(a: int, b: int) -> int:
        assert node.lib.nvmlDeviceGetTopologyCommonAncestor(device[a], device[b], byref(level)) == OK
        return level.value

    assert (distance(0, 1), distance(1, 0), distance(0, 2), distance(2, 3)) == (10, 10, 50, 50)

    def neighbours(gpu: int) -> list[int]:
        found = []
        for link in range(18):
            active, pci = c_uint(), Pci()
            if node.lib.nvmlDeviceGetNvLinkState(device[gpu], link, byref(active)) == UNSUPPORTED:
                continue
            assert active.value == 1
            assert node.lib.nvmlDeviceGetNvLinkRemotePciInfo_v2(device[gpu], link, byref(pci)) == OK
            found.append(pci.bus - 7)
        return found

    assert [neighbours(gpu) for gpu in range(4)] == [[1, 1, 3], [0, 0], [], [0]]
    assert node.lib.nvmlDeviceGetNvLinkState(device[0], 18, byref(c_uint())) == INVALID


BASE = "model = M\nmemory_mib = 1\nnode = n\n"


@pytest.mark.parametrize(
    ("conf", "complaint"),
    [
        (BASE, "the key count is missing"),
        ("count = 0\n" + BASE, ":1: count must be 1 to 16, found `0`"),
        (BASE + "count = four\n", ":4: count must be 1 to 16, found `four`"),
        (BASE + "count = -1\n", "count must be 1 to 16"),
        (BASE + "count = 2\nmodle = X\n", ":5: modle is not a known key"),
        (BASE + "count 2\n", "expected `key = value`"),
        (BASE + "count = 2\ncompute = 8\n", "compute must be two numbers"),
        (BASE + "count = 2\nnvlink = 0-2:1\n", "names a GPU that count does not have"),
        (BASE + "count = 2\nnvlink = 0-1:19\n", "more than 18 links"),
        (BASE + "count = 2\nnvlink = 0-1\n", "must look like"),
        (BASE + "count = 3\nnvlink = 0-2:5\nnvlink = 0-1:-1\n", "more than 18 links"),
        (BASE + "count = 2\ncompute = -1.0\n", "compute must be two numbers"),
        (BASE + "count = 2\npair = 0-1 near\n", "must name one of internal"),
        (BASE + "count = 2\ndefault_pair = near\n", ":5: default_pair must name one of internal"),
        (BASE + "count = 17\n", ":4: count must be 1 to 16, found `17`"),
        (BASE + "count = 3\nnvlink = 0-1:12\nnvlink = 0-2:12\n", "gives one GPU more than 18 links"),
        (BASE + "count = 2\nnvlink = 0-0:1\n", "must name two different GPUs"),
        (BASE + "count = 2\ncompute = eight\n", "compute must be two numbers"),
        (BASE + "count = 2\ncuda = 12\n", "cuda must be two numbers"),
        (BASE + "count = 2\nmemory_mib = 0\n", "memory_mib must be 1 to 16777216 MiB"),
        (BASE + "count = 2\nmemory_mib = 40960.5\n", "memory_mib must be 1 to 16777216 MiB"),
        (BASE + "count = 2\nmodel =\n", "model must not be empty"),
        (BASE + "count = 2\nmodel = two\nlines\n", "expected `key = value`, found `lines`"),
        (BASE + "count = 2\nnode =\n", "node must not be empty"),
        (BASE + f"count = 2\ndriver = {'x' * 80}\n", "driver is too long"),
        (BASE + "count = 2\npci_device_id = -1\n", "pci_device_id must be a 32-bit number"),
        (BASE + "count = 2\npair = 0-0 node\n", "must name two different GPUs"),
        (BASE + "count = 2\npair = 0-1 node\npair = 1-0 node\n", ":6: pair names a pair for the second time"),
        (None, "cannot be read"),
    ],
)
def test_bad_configuration_is_one_line(tmp_path: Path, library: Path, conf: str | None, complaint: str) -> None:
    path = tmp_path / "gpu.conf"
    if conf is not None:
        path.write_text(conf)
    program = f"import ctypes, sys; sys.exit(ctypes.CDLL({str(library)!r}).nvmlInit_v2())"
    done = subprocess.run(
        [sys.executable, "-c", program], env={**os.environ, "TRAINYARD_MOCK_GPU_CONF": str(path)},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == (NO_DRIVER if conf is None else INVALID)
    assert done.stderr.count("\n") == 1
    assert done.stderr.startswith(f"mock-nvml: {path}")
    assert complaint in done.stderr


def test_every_name_the_device_plugin_looks_up_is_there(library: Path) -> None:
    lib = ctypes.CDLL(str(library))
    names = """
        nvmlInit_v2 nvmlShutdown nvmlErrorString nvmlSystemGetDriverVersion nvmlSystemGetCudaDriverVersion
        nvmlDeviceGetCount_v2 nvmlDeviceGetHandleByIndex_v2 nvmlDeviceGetHandleByUUID nvmlDeviceGetUUID
        nvmlDeviceGetName nvmlDeviceGetMinorNumber nvmlDeviceGetPciInfo_v3 nvmlDeviceGetCudaComputeCapability
        nvmlDeviceGetMemoryInfo nvmlDeviceGetMigMode nvmlDeviceGetMaxMigDeviceCount nvmlEventSetCreate
        nvmlEventSetWait_v2 nvmlEventSetFree nvmlDeviceGetSupportedEventTypes nvmlDeviceRegisterEvents
        nvmlDeviceGetTopologyCommonAncestor nvmlDeviceGetNvLinkState nvmlDeviceGetNvLinkRemotePciInfo_v2
        nvmlDeviceIsMigDeviceHandle nvmlDeviceGetAddressingMode
    """
    assert [name for name in names.split() if not hasattr(lib, name)] == []


def test_library_loads_with_the_c_library_of_the_plugins_image(library: Path) -> None:
    needed = {int(minor) for minor in re.findall(rb"GLIBC_2\.(\d+)", library.read_bytes())}
    assert needed
    assert max(needed) <= 34
