"""The expected device and back end of a training, compared with what the training reports."""

from collections.abc import Mapping
from typing import Any

from trainyard_dev.e2e.context import Context
from trainyard_dev.e2e.recorder import require

CPU = "cpu"


def check(
    context: Context, metrics: Mapping[str, Any], backend: str, figures: dict[str, Any], *, gpus: int = 0
) -> None:
    """Records both, and fails if they differ. Mock GPUs compute nothing, so the CPU is expected with them.

    Args:
        backend: expected on CPUs; "" for any.
        gpus: GPUs that it holds, with a CUDA image: if they are real, it must compute on them.
    """
    device, ran = str(metrics["device"]), str(metrics["backend"])
    figures |= {"device": device, "backend": ran}
    on_cpu = device.lower().startswith(CPU)
    if context.gpu != "real":
        require(on_cpu, f"the job computed on {device} instead of the CPU, without real GPUs")
    else:
        require(not gpus or not on_cpu, f"the job computed on {device} instead of its {gpus} GPU(s)")
    due = backend if on_cpu else {"gloo": "nccl", "horovod-mpi": "horovod-nccl"}.get(backend, backend)
    require(due in ("", ran), f"the ranks' backend was {ran}, not {due} as expected on {device}")
