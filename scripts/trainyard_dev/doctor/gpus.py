"""Checks of GPUs, and the known issues of real GPUs on kind with their fixes."""

import re
from dataclasses import dataclass, replace

from trainyard_dev.doctor import engines
from trainyard_dev.doctor.finding import Finding, Wanted
from trainyard_dev.doctor.probes import Machine

GROUP = "GPU"
RUNTIME = "default runtime"
CONFIG = "/etc/nvidia-container-runtime/config.toml"
CONFIGURE = "nvidia-ctk runtime configure --runtime=docker --set-as-default --cdi.enabled && systemctl restart docker"
MOUNTS = "accept-nvidia-visible-devices-as-volume-mounts"
ENVIRONMENT = "accept-nvidia-visible-devices-envvar-when-unprivileged"


@dataclass(frozen=True)
class KnownIssue:
    """A known issue: symptom, cause and fix; ``threads`` are the public reports."""

    symptom: str
    why: str
    hint: str
    threads: str


KNOWN = (
    KnownIssue(
        "umount: /proc/driver/nvidia: not mounted",
        "container toolkit 1.18 or newer inside a kind node",
        "apt-get install -y --allow-downgrades nvidia-container-toolkit=1.17.8-1",
        "nvkind#61, nvkind#48, nvkind#37, k8s-device-plugin#811",
    ),
    KnownIssue(
        "Incompatible strategy detected auto; invalid device discovery strategy",
        "the device plugin finds neither NVML nor a driver root in its container",
        "set the plugin's runtimeClassName to nvidia, or deviceDiscoveryStrategy to nvml with the right driver root",
        "k8s-device-plugin#1134, #1220, #1469, #1470, #1574",
    ),
    KnownIssue(
        "device plugin pods crash on workers",
        "the node does not have the GPUs or lacks the toolkit",
        "mount /dev/null at /var/run/nvidia-container-devices/all in the node, and install the toolkit in it",
        "nvkind#20",
    ),
    KnownIssue(
        'no runtime for "nvidia" is configured',
        "the RuntimeClass exists, but containerd of the node knows no such runtime",
        "in the node: nvidia-ctk runtime configure --runtime=containerd && systemctl restart containerd",
        "k8s-device-plugin#479",
    ),
    KnownIssue(
        "a worker without GPUs does not start",
        "every node has the GPU mount",
        "mount it on GPU nodes only",
        "kind#3257",
    ),
)


def is_real(m: Machine) -> bool:
    """Whether this machine has an NVIDIA GPU with a driver that answers."""
    return bool(_listed(m)) or m.exists("/proc/driver/nvidia/gpus")


def check(m: Machine, wanted: Wanted) -> list[Finding]:
    real = is_real(m)
    if not real:
        if wanted.gpu == "real":
            lacks = "none, but GPU=real is set"
            return [Finding(GROUP, "GPUs", lacks, "missing", "install the driver until `nvidia-smi -L` lists the GPUs")]
        return [Finding(GROUP, "GPUs", "none; mock GPUs are used, which do not test CUDA", "ok")]
    if wanted.gpu == "mock":
        return [Finding(GROUP, "GPUs", f"{_shown(m)}; uses mock GPUs, as requested, without CUDA", "ok")]
    found = _of_real(m, wanted)
    if wanted.gpu == "real" or not obstacles(m, wanted):
        return found
    # GPU=auto falls back to mock ones, so none of this stops a run.
    return [replace(one, state="warn" if one.state == "missing" else one.state) for one in found]


def obstacles(m: Machine, wanted: Wanted) -> list[Finding]:
    """The obstacles that keep GPU=auto from using this machine's GPUs; none where all is set up for them."""
    found = _of_real(m, wanted)
    return [one for one in found if one.state == "missing" or (one.check == RUNTIME and one.state != "ok")]


def _of_real(m: Machine, wanted: Wanted) -> list[Finding]:
    if not _listed(m):
        return [Finding(GROUP, "GPUs", _shown(m), "missing", "nvidia-smi   # and fix what it names")]
    return [Finding(GROUP, "GPUs", _shown(m), "ok"), _toolkit(m), *_settings(m), _runtime(m, wanted)]


def _shown(m: Machine) -> str:
    names = _listed(m)
    return f"{len(names)} of {names[0]}" if names else "a driver, but nvidia-smi lists none"


def _listed(m: Machine) -> list[str]:
    if not m.which("nvidia-smi"):
        return []
    code, said = m.run("nvidia-smi", "-L")
    return re.findall(r"^GPU \d+: (.+?) \(UUID", said, re.MULTILINE) if code == 0 else []


def _toolkit(m: Machine) -> Finding:
    said = m.run("nvidia-ctk", "--version")[1] if m.which("nvidia-ctk") else ""
    found = re.search(r"(\d+)\.(\d+)\.(\d+)", said)
    if not found:
        hint = "apt-get install -y nvidia-container-toolkit=1.17.8-1"
        return Finding(GROUP, "container toolkit", "absent", "missing", hint)
    if (int(found[1]), int(found[2])) >= (1, 18):
        return Finding(
            GROUP, "container toolkit", f"{found[0]}: known to fail with `{KNOWN[0].symptom}`", "warn", KNOWN[0].hint
        )
    return Finding(GROUP, "container toolkit", found[0], "ok")


def _settings(m: Machine) -> list[Finding]:
    text = m.read(CONFIG)

    def value(key: str) -> str:
        found = re.search(rf"^\s*{key}\s*=\s*(\w+)", text, re.MULTILINE)
        return found[1] if found else "not set"

    def finding(name: str, key: str, want: str, state: str) -> Finding:
        if value(key) == want:
            return Finding(GROUP, name, want, "ok")
        hint = f"nvidia-ctk config --set {key}={want} --in-place"
        return Finding(GROUP, name, f"{value(key)}, must be {want}", "missing" if state == "missing" else "warn", hint)

    return [
        finding("GPUs by volume mount", MOUNTS, "true", "missing"),
        finding("GPUs by variable for all", ENVIRONMENT, "false", "warn"),
    ]


def _runtime(m: Machine, wanted: Wanted) -> Finding:
    use = engines.chosen(m, wanted)
    if use != "docker":
        shown = f"{use or 'no engine'}: real GPUs on kind are known to work with Docker only"
        return Finding(GROUP, RUNTIME, shown, "warn", "install Docker, then " + CONFIGURE)
    code, said = m.run("docker", "info", "--format", "{{.DefaultRuntime}}")
    if code == 0 and said.strip() == "nvidia":
        return Finding(GROUP, RUNTIME, "nvidia", "ok")
    return Finding(GROUP, RUNTIME, f"{said.strip() or 'unknown'}, must be nvidia", "missing", CONFIGURE)
