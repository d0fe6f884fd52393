"""TorchScript models for the bench, in addition to `models`: the same small network, and one large enough for a GPU.

`python -m trainyard_dev.serving.torch_models FOLDER` runs in an environment that has PyTorch, after `models`.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import torch
from torch import nn

from trainyard_dev.serving import models

WIDTH = 4096


def make(folder: Path) -> None:
    """Makes `pytorch/`, a perceptron with the weights of `onnx/`, and `pytorch-wide/`, two untrained layers of 4096."""
    weights = np.load(folder / "weights.npz")
    arrays = [torch.from_numpy(weights[name].astype(np.float32)) for name in weights.files]
    small = nn.Sequential(nn.Linear(models.PIXELS, models.HIDDEN), nn.ReLU(), nn.Linear(models.HIDDEN, models.CLASSES))
    names = ("0.weight", "0.bias", "2.weight", "2.bias")
    small.load_state_dict(
        {name: array.T if array.ndim == 2 else array for name, array in zip(names, arrays, strict=True)}
    )
    torch.manual_seed(models.SEED)
    layers = [nn.Linear(models.PIXELS, WIDTH), nn.ReLU(), nn.Linear(WIDTH, WIDTH), nn.ReLU()]
    wide = nn.Sequential(*layers, nn.Linear(WIDTH, models.CLASSES))
    rows = [{"name": "image", "datatype": "FP32", "shape": [-1, models.PIXELS]}]
    logits = [{"name": "logits", "datatype": "FP32", "shape": [-1, models.CLASSES]}]
    for name, module in (("pytorch", small), ("pytorch-wide", wide)):
        (folder / name).mkdir()
        torch.jit.script(module.eval()).save(str(folder / name / "model.pt"))
        models.card(folder / name, "digits", "pytorch", "model.pt", {"inputs": rows, "outputs": logits})


if __name__ == "__main__":
    make(Path(sys.argv[1]))
