"""The device and the back end that a training is due to have had, by what it says of itself."""

from collections.abc import Mapping
from typing import Any

from trainyard_dev.e2e.context import Context
from trainyard_dev.e2e.recorder import require

CPU = "cpu"


def check(
    context: Context, metrics: Mapping[str, Any], backend: str, figures: dict[str, Any], *, gpus: int = 0
) -> None:
    """Notes both, and fails on others than are due. Mock GPUs compute nothing, so the CPU is due beside them.

    Args:
        backend: due on CPUs; "" for any.
        gpus: those that it holds, with an image that has CUDA: where they are real, it computes on them.
    """
    device, ran = str(metrics["device"]), str(metrics["backend"])
    figures |= {"device": device, "backend": ran}
    on_cpu = device.lower().startswith(CPU)
    if context.gpu != "real":
        require(on_cpu, f"it computed on {device}, due is the CPU: there is no GPU that computes")
    else:
        require(not gpus or not on_cpu, f"it computed on {device} beside its {gpus} GPU(s), which compute")
    due = backend if on_cpu else {"gloo": "nccl", "horovod-mpi": "horovod-nccl"}.get(backend, backend)
    require(due in ("", ran), f"the ranks' back end was {ran}, due on {device} is {due}")
