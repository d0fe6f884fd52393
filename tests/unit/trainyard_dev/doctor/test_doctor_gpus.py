"""The doctor on machines with GPUs: the known issues of drivers and toolkits."""

from __future__ import annotations

from doctor_box import DEAD, Box, find

from trainyard_dev.doctor import gpus
from trainyard_dev.doctor.examine import examine
from trainyard_dev.doctor.finding import Wanted, healthy


def gpu_box(toolkit: str = "1.17.8", runtime: str = "nvidia", config: str | None = None) -> Box:
    box = Box()
    box.programs |= {"nvidia-smi", "nvidia-ctk", "docker"}
    box.answers |= {
        "nvidia-smi -L": (0, "GPU 0: NVIDIA H200 (UUID: GPU-1)\nGPU 1: NVIDIA H200 (UUID: GPU-2)"),
        "nvidia-ctk --version": (0, f"NVIDIA Container Toolkit CLI version {toolkit}"),
        "docker version": (0, "28.1.0"),
        "docker info": (0, runtime),
    }
    good = f"{gpus.MOUNTS} = true\n{gpus.ENVIRONMENT} = false\n"
    box.files[gpus.CONFIG] = good if config is None else config
    return box


def test_no_gpu_is_well_unless_one_was_asked_for() -> None:
    assert find(Box(), "GPUs").state == "ok"
    assert find(Box(), "GPUs", Wanted(gpu="real")).state == "missing"


def test_real_gpus_well_set_up() -> None:
    box = gpu_box()
    assert find(box, "GPUs").found == "2 of NVIDIA H200"
    assert healthy(examine(box))
    assert find(box, "GPUs", Wanted(gpu="mock")).state == "missing"


def test_known_issues_of_real_gpus() -> None:
    new = find(gpu_box(toolkit="1.18.0"), "container toolkit")
    assert new.state == "warn"
    assert "/proc/driver/nvidia: not mounted" in new.found
    assert find(gpu_box(runtime="runc"), "default runtime").hint == gpus.CONFIGURE
    commented = gpu_box(config=f"#{gpus.MOUNTS} = true\n")
    assert find(commented, "GPUs by volume mount").state == "missing"
    assert find(commented, "GPUs by variable for all").state == "warn"
    on_podman = gpu_box()
    on_podman.answers["docker version"] = DEAD
    assert find(on_podman, "default runtime").state == "warn"
    broken = gpu_box()
    broken.answers["nvidia-smi -L"] = (9, "NVIDIA-SMI has failed because it couldn't communicate with the driver")
    broken.paths.add("/proc/driver/nvidia/gpus")
    assert find(broken, "GPUs").state == "missing"
