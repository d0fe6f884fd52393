"""Checks of GPUs: whether the nodes of a cluster on this machine can have them."""

import re

from trainyard_dev.doctor.finding import Finding, Wanted
from trainyard_dev.doctor.probes import Machine
from trainyard_dev.gpu import cdi

GROUP = "GPU"


def check(m: Machine, wanted: Wanted) -> list[Finding]:
    names = _listed(m)
    if not names and not m.exists("/proc/driver/nvidia/gpus"):
        if wanted.gpu == "real":
            lacks = "none, but GPU=real is set"
            return [Finding(GROUP, "GPUs", lacks, "missing", "install the driver until `nvidia-smi -L` lists the GPUs")]
        return [Finding(GROUP, "GPUs", "none; mock GPUs are used, which do not test CUDA", "ok")]
    shown = f"{len(names)} of {names[0]}" if names else "a driver, but nvidia-smi lists none"
    if wanted.gpu != "real":
        return [Finding(GROUP, "GPUs", f"{shown}; mock GPUs are used, without CUDA, unless GPU=real is set", "ok")]
    if not names:
        return [Finding(GROUP, "GPUs", shown, "missing", "nvidia-smi   # and fix what it names")]
    uvm = Finding(GROUP, cdi.UVM, "yes", "ok")
    if not m.exists(cdi.UVM):
        uvm = Finding(GROUP, cdi.UVM, "absent; CUDA needs this device", "missing", cdi.UVM_HINT)
    return [Finding(GROUP, "GPUs", shown, "ok"), uvm]


def _listed(m: Machine) -> list[str]:
    if not m.which("nvidia-smi"):
        return []
    code, said = m.run("nvidia-smi", "-L")
    return re.findall(r"^GPU \d+: (.+?) \(UUID", said, re.MULTILINE) if code == 0 else []
