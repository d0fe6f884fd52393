"""The network, its training step and its evaluation, shared by the DDP and the MPI trainer."""

from __future__ import annotations

import io
import os
from collections.abc import Iterator

import numpy as np
import torch
from torch import nn

from mnist.data import CLASSES, PIXELS
from mnist.perceptron import Perceptron

SEED = 20


def build(device: torch.device) -> nn.Module:
    """A two-layer perceptron with the same starting weights on every rank."""
    torch.manual_seed(SEED)
    return nn.Sequential(nn.Linear(PIXELS, 128), nn.ReLU(), nn.Linear(128, CLASSES)).to(device)


def load(network: nn.Module, model: Perceptron) -> None:
    """Gives a network of `build` the weights of a trained model."""
    names = dict(zip(("0.weight", "0.bias", "2.weight", "2.bias"), model.arrays(), strict=True))
    network.load_state_dict({name: torch.from_numpy(np.array(array)) for name, array in names.items()})


def pick_device() -> torch.device:
    """The CUDA device of this process when there is one, else the CPU."""
    if not torch.cuda.is_available():
        return torch.device("cpu")
    local = int(os.environ.get("LOCAL_RANK") or os.environ.get("OMPI_COMM_WORLD_LOCAL_RANK") or 0)
    index = local % torch.cuda.device_count()
    torch.cuda.set_device(index)
    return torch.device("cuda", index)


def batches(
    x: np.ndarray, y: np.ndarray, size: int, epoch: int, device: torch.device
) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
    """Shuffled batches of one epoch; a last short one is kept, so all ranks take the same number of steps."""
    order = np.random.default_rng(SEED + epoch).permutation(len(y))
    for start in range(0, len(y), size):
        pick = order[start : start + size]
        yield torch.from_numpy(x[pick]).to(device), torch.from_numpy(y[pick]).to(device)


@torch.no_grad()
def count_correct(model: nn.Module, x: np.ndarray, y: np.ndarray, device: torch.device) -> int:
    """How many of these images the model labels right."""
    model.eval()
    right = 0
    for start in range(0, len(y), 1000):
        logits = model(torch.from_numpy(x[start : start + 1000]).to(device))
        right += int((logits.argmax(1).cpu() == torch.from_numpy(y[start : start + 1000])).sum())
    model.train()
    return right


def checkpoint_bytes(model: nn.Module, epochs: int) -> bytes:
    """The weights (on the CPU) and the epoch count as `torch.load` reads them."""
    state = {name: value.detach().cpu() for name, value in model.state_dict().items()}
    buffer = io.BytesIO()
    torch.save({"model": state, "epochs": epochs}, buffer)
    return buffer.getvalue()
