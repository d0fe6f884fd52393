"""The files of this machine's GPU driver that a kind node needs, as NVIDIA's toolkit lists them for CDI.

kind's nodes are privileged, so they have the machine's device files. With the driver's files, the device plugin on the
node writes the CDI spec by which containerd gives a pod its GPUs: neither needs NVIDIA's container runtime.
"""

from pathlib import Path

import yaml

from trainyard.errors import TrainyardError
from trainyard.shell import run
from trainyard_dev import tools

HOOK = "/usr/bin/nvidia-cdi-hook"  # value cdi.nvidiaHookPath of the device plugin
LIBRARIES = Path("/usr/lib/x86_64-linux-gnu")  # of Debian, which the nodes run; other machines have another folder
UVM = "/dev/nvidia-uvm"
UVM_HINT = "nvidia-modprobe -c 0 -u"


def files(root: Path = Path("/")) -> dict[str, Path]:
    """The driver's libraries and programs, and the hook that CDI calls, by their paths on a node.

    Args:
        root: the folder whose driver is listed, with the device files in `dev`.

    Raises:
        TrainyardError: the toolkit finds no driver, or CUDA's device file is missing.
    """
    words = ["cdi", "generate", "--no-all-device", "--driver-root", str(root), "--nvidia-cdi-hook-path", HOOK]
    hint = "check that `nvidia-smi` lists the GPUs, or use GPU=mock"
    found = run([tools.binary("nvidia-ctk"), "--quiet", *words], timeout=60, hint=hint)
    edits = yaml.safe_load(found.stdout)["containerEdits"]
    if UVM not in {device["path"] for device in edits.get("deviceNodes", [])}:
        raise TrainyardError(f"the device file of CUDA, {UVM}, is missing", hint=f"as root: {UVM_HINT}")
    folder = dict(pair.split("=", 1) for pair in edits["env"])["NVIDIA_CTK_LIBCUDA_DIR"]
    made = {HOOK: tools.binary("nvidia-cdi-hook")}
    for one in edits["mounts"]:
        host, node = Path(one["hostPath"]), Path(one["containerPath"])
        if host.is_file():  # sockets and folders belong to services of the machine
            node = LIBRARIES / node.relative_to(folder) if node.is_relative_to(folder) else node
            made[str(node)] = host
    return made
