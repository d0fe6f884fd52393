"""The doctor on machines with GPUs: what GPU=real needs."""

from doctor_box import Box, find

from trainyard_dev.doctor import examine
from trainyard_dev.doctor.finding import Wanted, healthy
from trainyard_dev.gpu import cdi

REAL = Wanted(gpu="real")


def gpu_box() -> Box:
    box = Box()
    box.programs.add("nvidia-smi")
    box.paths.add(cdi.UVM)
    box.answers["nvidia-smi -L"] = (0, "GPU 0: NVIDIA H200 (UUID: GPU-1)\nGPU 1: NVIDIA H200 (UUID: GPU-2)")
    return box


def test_no_gpu_is_well_unless_one_was_asked_for() -> None:
    assert find(Box(), "GPUs").state == "ok"
    assert find(Box(), "GPUs", REAL).state == "missing"


def test_the_driver_is_all_that_real_gpus_need() -> None:
    assert find(gpu_box(), "GPUs", REAL).found == "2 of NVIDIA H200"
    assert healthy(examine(gpu_box(), REAL))
    unused = find(gpu_box(), "GPUs")
    assert (unused.state, unused.found) == (
        "ok", "2 of NVIDIA H200; mock GPUs are used, without CUDA, unless GPU=real is set"
    )  # fmt: skip


def test_a_driver_that_lacks_something_is_named_with_the_fix() -> None:
    box = gpu_box()
    box.paths.discard(cdi.UVM)
    assert (find(box, cdi.UVM, REAL).state, find(box, cdi.UVM, REAL).hint) == ("missing", "nvidia-modprobe -c 0 -u")
    assert healthy(examine(box))
    box.answers["nvidia-smi -L"] = (9, "NVIDIA-SMI has failed because it couldn't communicate with the driver")
    box.paths.add("/proc/driver/nvidia/gpus")
    assert find(box, "GPUs").state == "ok"
    assert find(box, "GPUs", REAL).state == "missing"
