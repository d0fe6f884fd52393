"""The doctor on machines with GPUs: the known issues of drivers and toolkits."""

from doctor_box import DEAD, Box, find

from trainyard_dev.doctor import examine, gpus
from trainyard_dev.doctor.finding import Wanted, healthy

REAL = Wanted(gpu="real")


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
    assert gpus.obstacles(box, Wanted()) == []
    mocked = find(box, "GPUs", Wanted(gpu="mock"))
    assert (mocked.state, mocked.found) == ("ok", "2 of NVIDIA H200; uses mock GPUs, as requested, without CUDA")


def test_a_workstation_without_the_toolkit_runs_on_mock_gpus() -> None:
    """GPU=auto goes on without its GPUs, and the doctor only warns; GPU=real insists."""
    box = gpu_box(runtime="runc")
    box.programs.discard("nvidia-ctk")
    assert [one.check for one in gpus.obstacles(box, Wanted())] == ["container toolkit", "default runtime"]
    assert find(box, "container toolkit").state == "warn"
    assert healthy(examine(box))
    assert find(box, "container toolkit", REAL).state == "missing"
    assert not healthy(examine(box, REAL))


def test_gpus_reach_nodes_of_podman_only_when_asked_for() -> None:
    assert [one.check for one in gpus.obstacles(gpu_box(), Wanted(engine="podman"))] == ["default runtime"]


def test_known_issues_of_real_gpus() -> None:
    new = find(gpu_box(toolkit="1.18.0"), "container toolkit")
    assert new.state == "warn"
    assert "/proc/driver/nvidia: not mounted" in new.found
    assert find(gpu_box(runtime="runc"), "default runtime").hint == gpus.CONFIGURE
    commented = gpu_box(config=f"#{gpus.MOUNTS} = true\n")
    assert find(commented, "GPUs by volume mount", REAL).state == "missing"
    assert find(commented, "GPUs by variable for all", REAL).state == "warn"
    on_podman = gpu_box()
    on_podman.answers["docker version"] = DEAD
    assert find(on_podman, "default runtime").state == "warn"
    broken = gpu_box()
    broken.answers["nvidia-smi -L"] = (9, "NVIDIA-SMI has failed because it couldn't communicate with the driver")
    broken.paths.add("/proc/driver/nvidia/gpus")
    assert find(broken, "GPUs").state == "warn"
    assert find(broken, "GPUs", REAL).state == "missing"
