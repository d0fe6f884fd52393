"""Series of mock GPUs under the names of NVIDIA's DCGM exporter: `python3 -m trainyard_agent mock-dcgm`.

For test clusters. GPUs are those that the mock's library reports, so one that fell off the bus has no series. Their
load is in the file `load` next to `fault`, in lines `load <gpu> <percent> <memory in MiB>`; the last
line of a GPU counts, and without any it is idle. The kubelet's checkpoint has the containers that hold them.
"""

from __future__ import annotations

import ctypes
import json
import signal
import threading
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from trainyard_agent.api import Api, ApiError
from trainyard_agent.exporter.serve import LastPage, Server
from trainyard_agent.install.gpus import LIBRARY, Memory
from trainyard_agent.rounds import told_to_stop
from trainyard_agent.say import say

CHECKPOINT = "kubelet_internal_checkpoint"
MIB = 1024 * 1024
IDLE_C, FULL_C = 34, 76  # degrees Celsius of an idle GPU, and of one at full load
IDLE_W, FULL_W = 55, 390
HELP = {
    "DCGM_FI_DEV_GPU_UTIL": "GPU utilization (in %).",
    "DCGM_FI_DEV_FB_USED": "Framebuffer memory used (in MiB).",
    "DCGM_FI_DEV_FB_FREE": "Framebuffer memory free (in MiB).",
    "DCGM_FI_DEV_XID_ERRORS": "Value of the last XID error encountered.",
    "DCGM_FI_DEV_GPU_TEMP": "GPU temperature (in C).",
    "DCGM_FI_DEV_POWER_USAGE": "Power draw (in W).",
}
Holder = tuple[str, str, str]  # namespace, pod, container


@dataclass(frozen=True)
class Gpu:
    """One GPU that responds: memory in MiB, `busy` in percent, `xid` the code of its last fault."""

    index: int
    uuid: str
    model: str
    memory: int
    busy: int = 0
    used: int = 0
    xid: int = 0


def shown(root: Path) -> Iterator[Gpu]:
    """The GPUs that the library in a driver root reports; none if the library is missing or fails."""
    if not (root / LIBRARY).exists():
        return
    nvml, number = ctypes.CDLL(str(root / LIBRARY)), ctypes.c_uint(0)
    if nvml.nvmlInit_v2() != 0:
        return
    try:
        nvml.nvmlDeviceGetCount_v2(ctypes.byref(number))
        for index in range(number.value):
            handle, memory = ctypes.c_void_p(), Memory()
            if nvml.nvmlDeviceGetHandleByIndex_v2(ctypes.c_uint(index), ctypes.byref(handle)) != 0:
                continue  # lost
            name, uuid = ctypes.create_string_buffer(96), ctypes.create_string_buffer(96)
            nvml.nvmlDeviceGetName(handle, name, ctypes.c_uint(96))
            nvml.nvmlDeviceGetUUID(handle, uuid, ctypes.c_uint(96))
            nvml.nvmlDeviceGetMemoryInfo(handle, ctypes.byref(memory))
            rates = (ctypes.c_uint * 2)()  # percent of the last second in which kernels ran, and memory was used
            if hasattr(nvml, "nvmlDeviceGetUtilizationRates"):  # a real driver's, not the mock's
                nvml.nvmlDeviceGetUtilizationRates(handle, rates)
            total, used = memory.total // MIB, memory.used // MIB
            yield Gpu(index, uuid.value.decode(), name.value.decode(), total, rates[0], used)
    finally:
        nvml.nvmlShutdown()


def state(root: Path, gpus: list[Gpu]) -> list[Gpu]:
    """The GPUs with the values of the files `load` and `fault`; invalid lines are ignored."""
    found = {gpu.index: gpu for gpu in gpus}
    for word, *rest in (*_words(root / "etc" / "load"), *_words(root / "etc" / "fault")):
        try:
            gpu = found[int(rest[0])]
            if word == "load":
                busy, used = min(max(int(rest[1]), 0), 100), min(max(int(rest[2]), 0), gpu.memory)
                found[gpu.index] = replace(gpu, busy=busy, used=used)
            elif word == "xid":
                found[gpu.index] = replace(gpu, xid=int(rest[1]))
        except (KeyError, ValueError, IndexError):
            continue
    return list(found.values())


def holders(checkpoint: dict[str, Any], pods: dict[str, tuple[str, str]]) -> dict[str, Holder]:
    """The container that holds each GPU, by UUID, from the kubelet's checkpoint; `pods`: unfinished ones, by uid."""
    found: dict[str, Holder] = {}
    for entry in (checkpoint.get("Data") or {}).get("PodDeviceEntries") or []:
        if entry.get("PodUID") in pods:
            namespace, pod = pods[entry["PodUID"]]
            for ids in (entry.get("DeviceIDs") or {}).values():
                # A shared GPU has one id for each share.
                found |= {one.partition("::")[0]: (namespace, pod, entry["ContainerName"]) for one in ids}
    return found


def page(node: str, gpus: list[Gpu], held: dict[str, Holder]) -> str:
    """The whole page in Prometheus' text format."""
    lines = []
    for name, about in HELP.items():
        lines += [f"# HELP {name} {about}", f"# TYPE {name} gauge"]
        for gpu in gpus:
            value = {
                "DCGM_FI_DEV_GPU_UTIL": gpu.busy,
                "DCGM_FI_DEV_FB_USED": gpu.used,
                "DCGM_FI_DEV_FB_FREE": gpu.memory - gpu.used,
                "DCGM_FI_DEV_XID_ERRORS": gpu.xid,
                "DCGM_FI_DEV_GPU_TEMP": IDLE_C + (FULL_C - IDLE_C) * gpu.busy // 100,
                "DCGM_FI_DEV_POWER_USAGE": IDLE_W + (FULL_W - IDLE_W) * gpu.busy // 100,
            }[name]
            labels = {"gpu": gpu.index, "UUID": gpu.uuid, "device": f"nvidia{gpu.index}", "modelName": gpu.model,
                      "Hostname": node}  # fmt: skip
            if gpu.uuid in held:
                labels |= dict(zip(("namespace", "pod", "container"), held[gpu.uuid], strict=True))
            lines.append(
                f"{name}{{{','.join(f'{key}={json.dumps(str(text))}' for key, text in labels.items())}}} {value}"
            )
    return "\n".join(lines) + "\n"


def look(api: Api, node: str, root: Path, devices: Path) -> str:
    """One page. Raises ApiError when the pods of the node can't be listed."""
    gpus = state(root, list(shown(root)))
    listed = api.get("/api/v1/pods", {"fieldSelector": f"spec.nodeName={node}"})
    pods = {
        pod["metadata"]["uid"]: (pod["metadata"]["namespace"], pod["metadata"]["name"])
        for pod in listed.get("items") or []
        if pod.get("status", {}).get("phase") not in ("Succeeded", "Failed")
    }
    try:
        noted = json.loads((devices / CHECKPOINT).read_text())
    except FileNotFoundError:  # the kubelet has not allocated a device yet
        noted = {}
    return page(node, gpus, holders(noted, pods))


def run(node: str, root: str, devices: str, port: int, period: float) -> int:
    """Serves the page until told to stop."""
    ended = told_to_stop([signal.SIGTERM])
    pages = LastPage("the first reading")
    server = Server(port, pages)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    say(f"series of mock GPUs of {node} at port {port}")
    api = Api()
    while not ended.is_set():
        try:
            pages.put(look(api, node, Path(root), Path(devices)))
        except (ApiError, OSError, ValueError) as error:
            say(f"not read: {error}")
        ended.wait(period)
    server.shutdown()
    return 0


def _words(file: Path) -> Iterator[list[str]]:
    """Words of each complete line of a file that may be missing; a last line without newline is still being written."""
    try:
        text = file.read_text()
    except FileNotFoundError:
        return
    for line in text.rpartition("\n")[0].splitlines():
        if (words := line.split()) and not words[0].startswith("#"):
            yield words
