"""Finds the GPUs of the node that a pod runs on, without a GPU runtime: by the driver's /proc files, else by NVML."""

from __future__ import annotations

import ctypes
import os
from dataclasses import dataclass
from pathlib import Path

LIBRARY = "usr/lib/x86_64-linux-gnu/libnvidia-ml.so.1"
PROC = Path("/proc/driver/nvidia/gpus")


@dataclass(frozen=True)
class Gpus:
    """The GPUs of a node. `model` is the product's name ("" unknown); `memory_mib` is per GPU in MiB, 0 unknown."""

    count: int
    model: str = ""
    memory_mib: int = 0


class Memory(ctypes.Structure):
    """NVML's answer about a GPU's memory, in bytes."""

    _fields_ = [("total", ctypes.c_ulonglong), ("free", ctypes.c_ulonglong), ("used", ctypes.c_ulonglong)]


def find(driver_root: str, proc: Path = PROC) -> Gpus:
    """The node's GPUs; Gpus(0) where there are none or the driver is not up."""
    listed = by_proc(proc)
    asked = by_nvml(driver_root)
    if listed.count == 0:
        return asked
    # NVML needs the device nodes, which an unprivileged pod lacks on a real host; if it answers, it has more details.
    return Gpus(listed.count, listed.model or asked.model, asked.memory_mib)


def by_proc(proc: Path = PROC) -> Gpus:
    """Counts the folders that the kernel driver makes, one per GPU."""
    try:
        files = sorted(proc.glob("*/information"))
    except OSError:
        return Gpus(0)
    model = ""
    for file in files:
        try:
            for line in file.read_text(errors="replace").splitlines():
                key, _, value = line.partition(":")
                if key.strip() == "Model" and value.strip():
                    model = model or value.strip()
        except OSError:
            continue
    return Gpus(len(files), model)


def by_nvml(driver_root: str) -> Gpus:
    """Queries the driver's management library in a child process, so that its crash can't end this one."""
    library = Path(driver_root) / LIBRARY
    if not library.exists():
        return Gpus(0)
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        status = 1
        try:
            os.close(read)
            gpus = _ask(str(library))
            os.write(write, f"{gpus.count}\n{gpus.memory_mib}\n{gpus.model}".encode())
            status = 0
        finally:
            os._exit(status)
    os.close(write)
    with os.fdopen(read, "rb") as stream:
        text = stream.read().decode(errors="replace")
    os.waitpid(child, 0)
    lines = text.split("\n", 2)
    if len(lines) != 3:
        return Gpus(0)
    return Gpus(int(lines[0]), lines[2], int(lines[1]))


def _ask(library: str) -> Gpus:
    """One round of NVML calls; a GPU that fails to answer (lost) is not counted."""
    nvml = ctypes.CDLL(library)
    if nvml.nvmlInit_v2() != 0:
        return Gpus(0)
    number = ctypes.c_uint(0)
    if nvml.nvmlDeviceGetCount_v2(ctypes.byref(number)) != 0:
        return Gpus(0)
    count, model, memory_mib = 0, "", 0
    for index in range(number.value):
        handle = ctypes.c_void_p()
        if nvml.nvmlDeviceGetHandleByIndex_v2(ctypes.c_uint(index), ctypes.byref(handle)) != 0:
            continue
        name = ctypes.create_string_buffer(96)
        if nvml.nvmlDeviceGetName(handle, name, ctypes.c_uint(96)) != 0:
            continue
        count += 1
        model = model or name.value.decode(errors="replace")
        memory = Memory()
        if memory_mib == 0 and nvml.nvmlDeviceGetMemoryInfo(handle, ctypes.byref(memory)) == 0:
            memory_mib = memory.total // (1024 * 1024)
    nvml.nvmlShutdown()
    return Gpus(count, model, memory_mib)
